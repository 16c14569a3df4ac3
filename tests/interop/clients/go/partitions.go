// azservicebus with a partitioned queue. Scenario names: runner/scenarios.py.
package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

const partitions = 16

func numbered(count int) []*sb.Message {
	var messages []*sb.Message
	for n := range count {
		messages = append(messages, text(strconv.Itoa(n)))
	}
	return messages
}

// sortedNumbers are the bodies as numbers: between partitions there is no order.
func sortedNumbers(messages []*sb.ReceivedMessage) []int {
	var all []int
	for _, m := range messages {
		all = append(all, got(strconv.Atoi(string(m.Body))))
	}
	slices.Sort(all)
	return all
}

func upTo(count int) []int {
	var all []int
	for n := range count {
		all = append(all, n)
	}
	return all
}

func countPartitions(messages []*sb.ReceivedMessage) int {
	seen := map[int64]bool{}
	for _, m := range messages {
		seen[*m.SequenceNumber>>48] = true
	}
	return len(seen)
}

// peekAll goes through everything as clients do: on from the last number until nothing comes.
func (s *steps) peekAll(from consumer) []*sb.ReceivedMessage {
	var seen []*sb.ReceivedMessage
	next := int64(1)
	for {
		page := got(from.PeekMessages(s.ctx, 3, &sb.PeekMessagesOptions{FromSequenceNumber: &next}))
		if len(page) == 0 {
			return seen
		}
		seen = append(seen, page...)
		next = *page[len(page)-1].SequenceNumber + 1
	}
}

func partitionSendReceive(s *steps) string {
	const count = 2 * partitions
	s.send(numbered(count)...)
	receiver := s.receiver()
	messages := s.take(receiver, count)
	same(sortedNumbers(messages), upTo(count), "bodies")
	same(countPartitions(messages), partitions, "partitions")
	s.complete(receiver, messages...)
	s.gone()
	return ""
}

func partitionKeyedOrder(s *steps) string {
	for n := range 10 {
		for key := range 8 {
			s.send(&sb.Message{Body: []byte(strconv.Itoa(n)), PartitionKey: pointer(fmt.Sprintf("key %d", key))})
		}
	}
	byKey := map[string][]*sb.ReceivedMessage{}
	for _, m := range s.take(s.receiver(), 80) {
		byKey[value(m.PartitionKey)] = append(byKey[value(m.PartitionKey)], m)
	}
	same(len(byKey), 8, "keys")
	for key, messages := range byKey {
		for n, m := range messages {
			same(string(m.Body), strconv.Itoa(n), "order of "+key)
		}
		same(countPartitions(messages), 1, "partitions of "+key)
	}
	return ""
}

func partitionBatch(s *steps) string {
	sender := s.sender()
	batch := got(sender.NewMessageBatch(s.ctx, nil))
	for _, m := range numbered(100) {
		must(batch.AddMessage(m, nil))
	}
	must(sender.SendMessageBatch(s.ctx, batch, nil))
	messages := s.take(s.receiver(), 100)
	for n, m := range messages {
		same(string(m.Body), strconv.Itoa(n), "order")
	}
	same(countPartitions(messages), 1, "partitions")
	return ""
}

func partitionMixedBatch(s *steps) string {
	sender := s.sender()
	batch := got(sender.NewMessageBatch(s.ctx, nil))
	for _, key := range []string{"a", "b"} {
		must(batch.AddMessage(&sb.Message{Body: []byte(key), PartitionKey: &key}, nil))
	}
	detail := expectCondition(sender.SendMessageBatch(s.ctx, batch, nil), amqp.ErrCondNotAllowed)
	s.gone()
	return detail
}

func partitionReceiveAndDelete(s *steps) string {
	s.send(numbered(20)...)
	receiver := got(s.client.NewReceiverForQueue(s.queue,
		&sb.ReceiverOptions{ReceiveMode: sb.ReceiveModeReceiveAndDelete}))
	same(sortedNumbers(s.take(receiver, 20)), upTo(20), "bodies")
	s.gone()
	return ""
}

func partitionPeek(s *steps) string {
	s.send(numbered(40)...)
	receiver := s.receiver()
	seen := s.peekAll(receiver)
	same(sortedNumbers(seen), upTo(40), "bodies")
	for i := 1; i < len(seen); i++ {
		if *seen[i].SequenceNumber <= *seen[i-1].SequenceNumber {
			fail("numbers do not ascend: %d after %d", *seen[i].SequenceNumber, *seen[i-1].SequenceNumber)
		}
	}
	same(len(s.take(receiver, 40)), 40, "none was locked by it")
	return ""
}

func partitionSchedule(s *steps) string {
	sender := s.sender()
	var later []int64
	for _, m := range numbered(6) {
		later = append(later, got(sender.ScheduleMessages(s.ctx, []*sb.Message{m}, time.Now().Add(time.Hour), nil))...)
	}
	must(sender.CancelScheduledMessages(s.ctx, later[:5], nil))
	if sender.CancelScheduledMessages(s.ctx, later[:1], nil) == nil {
		fail("a cancelled message was cancelled again")
	}
	due := []*sb.Message{
		{Body: []byte("due"), PartitionKey: pointer("k")}, {Body: []byte("due"), PartitionKey: pointer("k")}}
	got(sender.ScheduleMessages(s.ctx, due, time.Now().Add(time.Second), nil))
	same(bodies(s.take(s.receiver(), 2)), []string{"due", "due"}, "due messages")
	return ""
}

func partitionDefer(s *steps) string {
	s.send(numbered(8)...)
	receiver := s.receiver()
	var asked []int64
	for _, m := range s.take(receiver, 8) {
		asked = append(asked, *m.SequenceNumber)
		must(receiver.DeferMessage(s.ctx, m, nil))
	}
	s.nothing(receiver, time.Second)
	back := got(receiver.ReceiveDeferredMessages(s.ctx, asked, nil))
	for i, m := range back {
		same(*m.SequenceNumber, asked[i], "numbers, as asked")
	}
	s.complete(receiver, back...)
	s.gone()
	return ""
}

func partitionRenewLock(s *steps) string {
	s.send(numbered(4)...)
	receiver := s.receiver()
	for _, m := range s.take(receiver, 4) {
		must(receiver.RenewMessageLock(s.ctx, m, nil))
		s.complete(receiver, m)
	}
	s.gone()
	return ""
}

func partitionDuplicates(s *steps) string {
	for range 3 {
		for n := range 10 {
			s.send(&sb.Message{Body: []byte(strconv.Itoa(n)), MessageID: pointer(fmt.Sprintf("id-%d", n))})
		}
	}
	receiver := s.receiver()
	same(sortedNumbers(s.take(receiver, 10)), upTo(10), "bodies")
	s.nothing(receiver, time.Second)
	return ""
}

func partitionEmptyReceive(s *steps) string {
	receiver := s.receiver()
	s.nothing(receiver, time.Second)
	s.send(text("late"))
	same(string(s.takeOne(receiver).Body), "late", "body")
	return ""
}

func partitionAcceptNamed(s *steps) string {
	for n := range 6 {
		s.send(into(fmt.Sprintf("session %d", n), "0", "1", "2")...)
	}
	for n := range 6 {
		receiver := s.accept(fmt.Sprintf("session %d", n))
		same(bodies(s.take(receiver, 3)), []string{"0", "1", "2"}, "order")
		must(receiver.Close(s.ctx))
	}
	return ""
}

func partitionAcceptNext(s *steps) string {
	for n := range 6 {
		s.send(into(fmt.Sprintf("session %d", n), strconv.Itoa(n))...)
	}
	var seen []*sb.ReceivedMessage
	for range 6 {
		receiver := got(s.client.AcceptNextSessionForQueue(s.ctx, s.queue, nil))
		m := s.takeOne(receiver)
		same(value(m.SessionID), receiver.SessionID(), "session")
		s.complete(receiver, m)
		seen = append(seen, m)
		must(receiver.Close(s.ctx))
	}
	same(sortedNumbers(seen), upTo(6), "sessions")
	return ""
}

func partitionState(s *steps) string {
	for _, name := range []string{"a", "b", "c"} {
		receiver := s.accept(name)
		must(receiver.SetSessionState(s.ctx, []byte("of "+name), nil))
		must(receiver.RenewSessionLock(s.ctx, nil))
		must(receiver.Close(s.ctx))
	}
	for _, name := range []string{"a", "b", "c"} {
		receiver := s.accept(name)
		same(string(got(receiver.GetSessionState(s.ctx, nil))), "of "+name, "state")
		must(receiver.Close(s.ctx))
	}
	return ""
}

var partitionScenarios = map[string]func(s *steps) string{
	"partition/send-receive":         partitionSendReceive,
	"partition/keyed-order":          partitionKeyedOrder,
	"partition/batch":                partitionBatch,
	"partition/mixed-batch":          partitionMixedBatch,
	"partition/receive-and-delete":   partitionReceiveAndDelete,
	"partition/peek":                 partitionPeek,
	"partition/schedule":             partitionSchedule,
	"partition/defer":                partitionDefer,
	"partition/renew-lock":           partitionRenewLock,
	"partition/duplicates":           partitionDuplicates,
	"partition/empty-receive":        partitionEmptyReceive,
	"partition-session/accept-named": partitionAcceptNamed,
	"partition-session/accept-next":  partitionAcceptNext,
	"partition-session/state":        partitionState,
}
