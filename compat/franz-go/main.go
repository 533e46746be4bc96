// The franz-go client against a broker: `go run . [-secure FILE] HOST:PORT[,HOST:PORT...] [SCENARIO...]`.
//
// Runs each scenario (all of them by default) and prints `PASS name` or `FAIL name reason`; the exit code is the number
// of failures. Every scenario has its own topics and groups, so that runs may share a broker.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 45 * time.Second

type scenario struct {
	name string
	run  func(*run)
}

// run is a running scenario: its clients are closed at the end, and a failed check panics.
type run struct {
	context.Context
	common []kgo.Opt // addresses and security
	admin  *kadm.Client
	opened []func()
}

type failure string

func check(holds bool, format string, arguments ...any) {
	if !holds {
		panic(failure(fmt.Sprintf(format, arguments...)))
	}
}

func checkNoError(err error) {
	check(err == nil, "%v", err)
}

func (r *run) client(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(slices.Concat(r.common, options)...)
	checkNoError(err)
	r.opened = append(r.opened, client.Close)
	return client
}

func unique(stem string) string {
	return fmt.Sprintf("%s-%d-%d", stem, os.Getpid(), rand.Int63())
}

// topic creates a topic and waits until its leaders are known, which Kafka does not wait for.
func (r *run) topic(partitions int32) string {
	name := unique("go")
	_, err := r.admin.CreateTopic(r, partitions, -1, nil, name)
	checkNoError(err)
	r.until("the new topic has leaders", func() bool {
		offsets, err := r.admin.ListEndOffsets(r, name)
		return err == nil && offsets.Error() == nil && len(offsets[name]) == int(partitions)
	})
	return name
}

// until retries until the condition is true.
func (r *run) until(what string, holds func() bool) {
	for !holds() {
		check(r.Err() == nil, "in time: %s", what)
		time.Sleep(10 * time.Millisecond)
	}
}

func record(topic string, partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
}

// fill writes the numbers below count, round robin over the partitions.
func (r *run) fill(topic string, partitions, count int) {
	producer := r.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	records := make([]*kgo.Record, count)
	for n := range records {
		records[n] = record(topic, int32(n%partitions), fmt.Sprint(n))
	}
	checkNoError(producer.ProduceSync(r, records...).FirstErr())
}

// read returns the first count records of all partitions.
func (r *run) read(topic string, count int, options ...kgo.Opt) []*kgo.Record {
	reader := r.client(append([]kgo.Opt{
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, options...)...)
	return r.poll(reader, count)
}

func (r *run) poll(reader *kgo.Client, count int) []*kgo.Record {
	var records []*kgo.Record
	for len(records) < count {
		fetches := reader.PollFetches(r)
		checkNoError(fetches.Err())
		records = append(records, fetches.Records()...)
	}
	return records
}

// checkEnd reads to the end for an isolation level, and checks that there are no other records.
func (r *run) checkCommitted(topic string, wanted []string) {
	marker := r.client(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	checkNoError(marker.ProduceSync(r, record(topic, 0, "end")).FirstErr())
	var found []string
	for _, one := range r.read(topic, len(wanted)+1, kgo.FetchIsolationLevel(kgo.ReadCommitted())) {
		found = append(found, string(one.Value))
	}
	wanted = append(slices.Clone(wanted), "end")
	slices.Sort(wanted)
	slices.Sort(found)
	check(slices.Equal(found, wanted), "read %v, wanted %v", found, wanted)
}

func (r *run) do(one scenario) (outcome string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.Context = ctx
	defer func() {
		if thrown := recover(); thrown != nil {
			reason, isFailure := thrown.(failure)
			if !isFailure {
				panic(thrown)
			}
			outcome = "FAIL " + one.name + " " + strings.ReplaceAll(string(reason), "\n", " ")
		}
		cancel()
		for _, shut := range slices.Backward(r.opened) {
			shut()
		}
		r.opened = nil
	}()
	one.run(r)
	return "PASS " + one.name
}

func main() {
	secure := flag.String("secure", "", "a JSON `file` with the security of the listener")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: go run . [-secure FILE] HOST:PORT[,HOST:PORT...] [SCENARIO...]")
		os.Exit(2)
	}
	common, err := secureOptions(*secure)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	common = append(common, kgo.SeedBrokers(strings.Split(flag.Arg(0), ",")...))
	client, err := kgo.NewClient(common...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer client.Close()
	failures := 0
	for _, one := range slices.Concat(producing, groups, transactions, sharing) {
		if flag.NArg() == 1 || slices.Contains(flag.Args()[1:], one.name) {
			r := &run{common: common, admin: kadm.NewClient(client)}
			outcome := r.do(one)
			fmt.Println(outcome)
			if strings.HasPrefix(outcome, "FAIL") {
				failures++
			}
		}
	}
	os.Exit(min(failures, 100))
}
