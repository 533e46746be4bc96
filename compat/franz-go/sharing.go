package main

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var sharing = []scenario{
	{"share_group_accept", shareAccept},
	{"share_group_release_and_reject", shareReleaseAndReject},
	{"share_group_of_three", shareOfThree},
	{"share_group_renew", shareRenew},
	{"share_group_admin", shareAdmin},
}

// shareGroup creates a group that starts at the earliest records.
func (r *run) shareGroup() string {
	group, earliest := unique("share"), "earliest"
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", &earliest
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(r, r.client())
	checkNoError(err)
	check(response.Resources[0].ErrorCode == 0, "setting gave %d", response.Resources[0].ErrorCode)
	return group
}

func (r *run) sharer(group, topic string, options ...kgo.Opt) *kgo.Client {
	return r.client(append([]kgo.Opt{kgo.ShareGroup(group), kgo.ConsumeTopics(topic)}, options...)...)
}

func shareAccept(r *run) {
	topic, group := r.topic(2), r.shareGroup()
	r.fill(topic, 2, 100)
	reader := r.sharer(group, topic)
	read := map[string]bool{}
	for _, one := range r.poll(reader, 100) {
		check(one.DeliveryCount() == 1, "%s came %d times", one.Value, one.DeliveryCount())
		read[string(one.Value)] = true
		one.Ack(kgo.AckAccept)
	}
	check(len(read) == 100, "read %d different ones", len(read))
	checkNoError(reader.FlushAcks(r))
	reader.Close()
	r.fill(topic, 1, 1)
	again := r.poll(r.sharer(group, topic), 1)
	check(len(again) == 1 && string(again[0].Value) == "0" && again[0].Offset == 50, "%d at %d came again", len(again), again[0].Offset)
}

func shareReleaseAndReject(r *run) {
	topic, group := r.topic(1), r.shareGroup()
	r.fill(topic, 1, 3)
	reader := r.sharer(group, topic)
	statuses := map[string]kgo.AckStatus{"0": kgo.AckAccept, "1": kgo.AckRelease, "2": kgo.AckReject}
	for _, one := range r.poll(reader, 3) {
		one.Ack(statuses[string(one.Value)])
	}
	checkNoError(reader.FlushAcks(r))
	var counts []int32
	for len(counts) < 4 { // the broker gives it five times in all, by default
		one := r.poll(reader, 1)[0]
		check(string(one.Value) == "1", "%s came again", one.Value)
		counts = append(counts, one.DeliveryCount())
		one.Ack(kgo.AckRelease)
		checkNoError(reader.FlushAcks(r))
	}
	check(slices.Equal(counts, []int32{2, 3, 4, 5}), "delivered %v", counts)
	r.fill(topic, 1, 1)
	next := r.poll(reader, 1)[0]
	check(next.Offset == 3 && next.DeliveryCount() == 1, "next is %d", next.Offset)
}

func shareOfThree(r *run) {
	topic, group := r.topic(1), r.shareGroup()
	r.fill(topic, 1, 600)
	seen := make(chan string, 2000)
	for range 3 {
		reader := r.sharer(group, topic, kgo.ShareMaxRecords(20))
		go func() {
			for {
				fetches := reader.PollRecords(r, 20)
				if fetches.IsClientClosed() || r.Err() != nil {
					return
				}
				for _, one := range fetches.Records() {
					one.Ack(kgo.AckAccept)
					seen <- string(one.Value)
				}
			}
		}()
	}
	counts := map[string]int{}
	for len(counts) < 600 {
		select {
		case value := <-seen:
			counts[value]++
			check(counts[value] == 1, "%s came twice", value)
		case <-r.Done():
			check(false, "%d of 600 came", len(counts))
		}
	}
}

func shareRenew(r *run) {
	topic, group := r.topic(1), r.shareGroup()
	r.fill(topic, 1, 1)
	results := make(chan error, 10)
	reader := r.sharer(group, topic, kgo.ShareAckCallback(func(_ *kgo.Client, acks kgo.ShareAckResults) { results <- acks.Error() }))
	one := r.poll(reader, 1)[0]
	before := one.AcquisitionDeadline()
	check(before.After(time.Now()), "the lock ends at %v", before)
	one.Ack(kgo.AckRenew)
	checkNoError(reader.FlushAcks(r))
	checkNoError(<-results)
	one.Ack(kgo.AckAccept)
	checkNoError(reader.FlushAcks(r))
	checkNoError(<-results)
}

func shareAdmin(r *run) {
	topic, group := r.topic(1), r.shareGroup()
	r.fill(topic, 1, 10)
	reader := r.sharer(group, topic, kgo.ClientID("sharer"))
	for _, one := range r.poll(reader, 10) {
		one.Ack(kgo.AckAccept)
	}
	checkNoError(reader.FlushAcks(r))
	described, err := r.admin.DescribeShareGroups(r, group)
	checkNoError(err)
	state := described[group]
	check(state.GroupState == "Stable" && len(state.Members) == 1, "described as %v", state)
	r.until("nothing is left", func() bool { // the stored start follows with the next acknowledgement only
		offsets, err := r.admin.DescribeShareGroupOffsets(r, group)
		checkNoError(err)
		one, isThere := offsets[group].Offsets.Lookup(topic, 0)
		return isThere && one.Lag == 0
	})
}
