package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var transactions = []scenario{
	{"transaction_commit_and_abort", commitAndAbort},
	{"transaction_holds_readers_back", holdsReadersBack},
	{"transaction_fencing", fencing},
	{"transaction_admin", transactionAdmin},
	{"transaction_copy", func(r *run) { copyLoop(r, kgo.Balancers(kgo.CooperativeStickyBalancer())) }},
	{"transaction_copy_in_a_consumer_group", func(r *run) { copyLoop(r, serverSide()...) }},
}

func (r *run) transactional(id string) *kgo.Client {
	return r.client(kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
}

func commitAndAbort(r *run) {
	topic := r.topic(2)
	producer := r.transactional(unique("id"))
	var wanted []string
	for n := range 6 {
		checkNoError(producer.BeginTransaction())
		value := fmt.Sprint(n)
		checkNoError(producer.ProduceSync(r, record(topic, 0, value), record(topic, 1, value)).FirstErr())
		if n%2 == 0 {
			wanted = append(wanted, value, value)
		}
		checkNoError(producer.EndTransaction(r, n%2 == 0))
	}
	r.checkCommitted(topic, wanted)
}

func holdsReadersBack(r *run) {
	topic := r.topic(1)
	producer := r.transactional(unique("id"))
	checkNoError(producer.BeginTransaction())
	checkNoError(producer.ProduceSync(r, record(topic, 0, "held")).FirstErr())
	r.fill(topic, 1, 1)
	stable := func() int64 {
		offsets, err := r.admin.ListCommittedOffsets(r, topic)
		checkNoError(err)
		return offsets[topic][0].Offset
	}
	check(stable() == 0, "stable is %d", stable())
	checkNoError(producer.EndTransaction(r, kgo.TryCommit))
	r.until("all of it is stable", func() bool { return stable() == 3 })
	r.checkCommitted(topic, []string{"held", "0"})
}

func fencing(r *run) {
	topic, id := r.topic(1), unique("id")
	zombie := r.transactional(id)
	checkNoError(zombie.BeginTransaction())
	checkNoError(zombie.ProduceSync(r, record(topic, 0, "zombie")).FirstErr())
	successor := r.transactional(id)
	checkNoError(successor.BeginTransaction())
	checkNoError(successor.ProduceSync(r, record(topic, 0, "successor")).FirstErr())
	checkNoError(successor.EndTransaction(r, kgo.TryCommit))
	err := zombie.EndTransaction(r, kgo.TryCommit)
	isFenced := errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
	check(isFenced, "the zombie's commit gave %v", err)
	r.checkCommitted(topic, []string{"successor"})
}

func transactionAdmin(r *run) {
	topic, id := r.topic(1), unique("id")
	producer := r.transactional(id)
	checkNoError(producer.BeginTransaction())
	checkNoError(producer.ProduceSync(r, record(topic, 0, "a")).FirstErr())
	listed, err := r.admin.ListTransactions(r, nil, []string{"Ongoing"})
	checkNoError(err)
	check(listed[id].State == "Ongoing", "listed as %v", listed[id])
	described, err := r.admin.DescribeTransactions(r, id)
	checkNoError(err)
	check(described[id].Topics.Lookup(topic, 0), "described as %v", described[id])
	checkNoError(producer.EndTransaction(r, kgo.TryCommit))
	r.until("it is complete", func() bool {
		described, err := r.admin.DescribeTransactions(r, id)
		checkNoError(err)
		return described[id].State == "CompleteCommit"
	})
}

// copyLoop copies exactly once with two sessions of a group; then a third joins and the first leaves.
func copyLoop(r *run, options ...kgo.Opt) {
	const partitions, count = 4, 2000
	source, target, group := r.topic(partitions), r.topic(1), unique("group")
	r.fill(source, partitions, count)
	var copied atomic.Int64
	var running sync.WaitGroup
	start := func(slot int, until int64) {
		session, err := kgo.NewGroupTransactSession(slices.Concat(r.common, []kgo.Opt{
			kgo.TransactionalID(fmt.Sprintf("%s-%d", group, slot)), kgo.ConsumerGroup(group),
			kgo.ConsumeTopics(source), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RequireStableFetchOffsets(),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.HeartbeatInterval(300 * time.Millisecond),
		}, options)...)
		checkNoError(err)
		running.Add(1)
		go func() {
			defer running.Done()
			defer session.Close()
			for r.Err() == nil && copied.Load() < until {
				r.copyOnce(session, target, &copied)
			}
		}()
	}
	start(0, count/4)
	start(1, count)
	r.until("half is copied", func() bool { return copied.Load() >= count/2 })
	start(2, count)
	running.Wait()
	check(copied.Load() == count, "%d were copied", copied.Load())
	wanted := make([]string, count)
	for n := range wanted {
		wanted[n] = fmt.Sprint(n)
	}
	r.checkCommitted(target, wanted)
}

// copyOnce is one transaction; it is aborted randomly, and when partitions are revoked during it.
func (r *run) copyOnce(session *kgo.GroupTransactSession, target string, copied *atomic.Int64) {
	ctx, cancel := context.WithTimeout(r, 200*time.Millisecond)
	fetches := session.PollRecords(ctx, 50)
	cancel()
	if fetches.NumRecords() == 0 || session.Begin() != nil {
		return
	}
	aborted := kgo.AbortingFirstErrPromise(session.Client())
	fetches.EachRecord(func(one *kgo.Record) {
		session.Produce(r, record(target, 0, string(one.Value)), aborted.Promise())
	})
	wanted := aborted.Err() == nil && rand.Intn(10) != 0
	isCommitted, err := session.End(r, kgo.TransactionEndTry(wanted))
	if err == nil && isCommitted {
		copied.Add(int64(fetches.NumRecords()))
	}
}
