package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var groups = []scenario{
	{"group_commit_and_resume", func(r *run) { commitAndResume(r, "Classic") }},
	{"group_of_three_cooperative", func(r *run) { groupOfThree(r, "Classic", kgo.Balancers(kgo.CooperativeStickyBalancer())) }},
	{"group_of_three_range", func(r *run) { groupOfThree(r, "Classic", kgo.Balancers(kgo.RangeBalancer())) }},
	{"group_static_member", staticMember},
	{"consumer_group_commit_and_resume", func(r *run) { commitAndResume(r, "Consumer", serverSide()...) }},
	{"consumer_group_of_three_uniform", func(r *run) { groupOfThree(r, "Consumer", serverSide()...) }},
	{"consumer_group_of_three_range", func(r *run) {
		groupOfThree(r, "Consumer", kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
	}},
}

func serverSide() []kgo.Opt {
	return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
}

// member polls in the background and records its partitions and records.
type member struct {
	*kgo.Client
	mutex sync.Mutex
	owned map[int32]bool
	read  []*kgo.Record
	stop  func()
}

func (r *run) member(group, topic string, options ...kgo.Opt) *member {
	m := &member{owned: map[int32]bool{}}
	mark := func(owns bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			for _, partition := range changed[topic] {
				m.owned[partition] = owns
			}
		}
	}
	m.Client = r.client(append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.OnPartitionsAssigned(mark(true)), kgo.OnPartitionsRevoked(mark(false)), kgo.OnPartitionsLost(mark(false)),
	}, options...)...)
	ctx, cancel := context.WithCancel(r)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			fetches := m.PollFetches(ctx)
			m.mutex.Lock()
			m.read = append(m.read, fetches.Records()...)
			m.mutex.Unlock()
		}
	}()
	m.stop = func() { cancel(); <-done }
	r.opened = append(r.opened, m.stop)
	return m
}

func (m *member) partitions() map[int32]bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	owned := map[int32]bool{}
	for partition, owns := range m.owned {
		if owns {
			owned[partition] = true
		}
	}
	return owned
}

func (m *member) count() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return len(m.read)
}

func commitAndResume(r *run, kind string, options ...kgo.Opt) {
	topic, group := r.topic(1), unique("group")
	r.fill(topic, 1, 10)
	first := r.member(group, topic, options...)
	r.until("ten are read", func() bool { return first.count() == 10 })
	checkNoError(first.CommitRecords(r, first.read[6]))
	listed, err := r.admin.ListGroupsByType(r, []string{kind})
	checkNoError(err)
	check(listed[group].State == "Stable", "listed as %v", listed[group])
	first.stop()
	first.Close()
	offsets, err := r.admin.FetchOffsets(r, group)
	checkNoError(err)
	committed, _ := offsets.Lookup(topic, 0)
	check(committed.At == 7, "committed is %d", committed.At)
	second := r.member(group, topic, options...)
	r.until("the rest is read", func() bool { return second.count() == 3 })
	check(string(second.read[0].Value) == "7", "continues at %s", second.read[0].Value)
}

func groupOfThree(r *run, kind string, options ...kgo.Opt) {
	topic, group := r.topic(6), unique("group")
	r.fill(topic, 6, 60)
	members := []*member{r.member(group, topic, options...)}
	for len(members) < 3 {
		members = append(members, r.member(group, topic, options...))
		r.until("shares are even", func() bool { return even(members) })
	}
	if kind == "Consumer" {
		described, err := r.admin.DescribeConsumerGroups(r, group)
		checkNoError(err)
		check(described[group].State == "Stable" && len(described[group].Members) == 3, "described as %v", described[group])
	} else {
		described, err := r.admin.DescribeGroups(r, group)
		checkNoError(err)
		check(described[group].State == "Stable" && len(described[group].Members) == 3, "described as %v", described[group])
	}
	members[0].stop()
	members[0].Close()
	r.until("two share again", func() bool { return even(members[1:]) })
	read := map[string]bool{}
	for _, one := range members {
		for _, record := range one.read {
			read[string(record.Value)] = true
		}
	}
	check(len(read) == 60, "read %d of 60", len(read))
}

// even reports whether the members own all partitions, each once and in equal numbers.
func even(members []*member) bool {
	owners := map[int32]int{}
	for _, one := range members {
		owned := one.partitions()
		if len(owned) != 6/len(members) {
			return false
		}
		for partition := range owned {
			owners[partition]++
		}
	}
	return len(owners) == 6
}

func staticMember(r *run) {
	topic, group := r.topic(2), unique("group")
	static := func(name string) *member {
		return r.member(group, topic, kgo.InstanceID(name), kgo.Balancers(kgo.RangeBalancer()))
	}
	one, other := static("one"), static("other")
	r.until("each has one", func() bool { return len(one.partitions()) == 1 && len(other.partitions()) == 1 })
	owned := fmt.Sprint(one.partitions())
	_, before := other.GroupMetadata()
	one.stop()
	one.Close() // a static member does not leave
	one = static("one")
	r.until("it has the same again", func() bool { return fmt.Sprint(one.partitions()) == owned })
	_, after := other.GroupMetadata()
	check(before == after, "generation %d became %d", before, after)
	left, err := r.admin.LeaveGroup(r, kadm.LeaveGroup(group).InstanceIDs("one", "other"))
	checkNoError(err)
	checkNoError(left.Error())
}
