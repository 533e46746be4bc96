package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var producing = []scenario{
	{"roundtrip_none", func(r *run) { roundTrip(r, kgo.NoCompression()) }},
	{"roundtrip_gzip", func(r *run) { roundTrip(r, kgo.GzipCompression()) }},
	{"roundtrip_snappy", func(r *run) { roundTrip(r, kgo.SnappyCompression()) }},
	{"roundtrip_lz4", func(r *run) { roundTrip(r, kgo.Lz4Compression()) }},
	{"roundtrip_zstd", func(r *run) { roundTrip(r, kgo.ZstdCompression()) }},
	{"acks_leader_without_idempotence", acksLeader},
	{"offsets_of_times", offsetsOfTimes},
	{"out_of_range", outOfRange},
}

func roundTrip(r *run, codec kgo.CompressionCodec) {
	topic := r.topic(1)
	producer := r.client(kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond))
	records := make([]*kgo.Record, 500)
	for n := range records {
		records[n] = record(topic, 0, strings.Repeat(fmt.Sprintf("value-%d ", n), 20))
		records[n].Key = []byte(fmt.Sprintf("key-%d", n))
		records[n].Headers = []kgo.RecordHeader{{Key: "n", Value: []byte(fmt.Sprint(n))}, {Key: "null"}}
		records[n].Timestamp = time.UnixMilli(1_700_000_000_000 + int64(n))
	}
	checkNoError(producer.ProduceSync(r, records...).FirstErr())
	for n, found := range r.read(topic, len(records)) {
		wanted := records[n]
		check(found.Offset == int64(n), "offset %d of record %d", found.Offset, n)
		check(string(found.Key) == string(wanted.Key) && string(found.Value) == string(wanted.Value), "record %d differs", n)
		check(found.Timestamp.Equal(wanted.Timestamp), "time %v of record %d", found.Timestamp, n)
		check(len(found.Headers) == 2 && string(found.Headers[0].Value) == fmt.Sprint(n), "headers of record %d", n)
		check(found.Headers[1].Value == nil, "null header of record %d", n)
	}
}

func acksLeader(r *run) {
	topic := r.topic(1)
	producer := r.client(kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	for n := range 300 {
		producer.Produce(r, record(topic, 0, fmt.Sprint(n)), nil)
	}
	checkNoError(producer.Flush(r))
	for n, found := range r.read(topic, 300) {
		check(string(found.Value) == fmt.Sprint(n), "%s is at %d", found.Value, n)
	}
}

func offsetsOfTimes(r *run) {
	topic := r.topic(1)
	producer := r.client()
	for n := range 10 {
		one := record(topic, 0, fmt.Sprint(n))
		one.Timestamp = time.UnixMilli(1_700_000_000_000 + int64(n)*1000)
		checkNoError(producer.ProduceSync(r, one).FirstErr())
	}
	offsets, err := r.admin.ListOffsetsAfterMilli(r, 1_700_000_004_500, topic)
	checkNoError(err)
	check(offsets[topic][0].Offset == 5, "offset %d", offsets[topic][0].Offset)
	start := kgo.NewOffset().AfterMilli(1_700_000_004_500)
	checkFirst(r, topic, start, 5)
}

func outOfRange(r *run) {
	topic := r.topic(1)
	r.fill(topic, 1, 5)
	checkFirst(r, topic, kgo.NewOffset().At(99).WithEpoch(-1), 0)
}

func checkFirst(r *run, topic string, start kgo.Offset, wanted int64) {
	reader := r.client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: start}}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	first := r.poll(reader, 1)[0]
	check(first.Offset == wanted, "first is %d", first.Offset)
}
