// azservicebus with a queue: send, receive, settle, schedule, peek. Scenario names: runner/scenarios.py.
package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

func sendReceiveComplete(s *steps) string {
	before := time.Now().Add(-time.Second)
	s.send(text("hello"))
	receiver := s.receiver()
	m := s.takeOne(receiver)
	now := time.Now().Add(time.Second)
	same(string(m.Body), "hello", "body")
	same(*m.SequenceNumber, int64(1), "sequence number")
	same(m.DeliveryCount, uint32(1), "delivery count") // the SDK adds one
	same(m.State, sb.MessageStateActive, "state")
	if m.EnqueuedTime.Before(before) || m.EnqueuedTime.After(now) {
		fail("enqueued at %v, now it is %v", m.EnqueuedTime, now)
	}
	if !m.LockedUntil.After(now) {
		fail("locked until %v, now it is %v", m.LockedUntil, now)
	}
	if m.LockToken == [16]byte{} {
		fail("no lock token")
	}
	if !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(m.MessageID) { // the SDK sends none
		fail("message id %q", m.MessageID)
	}
	s.complete(receiver, m)
	s.gone()
	return ""
}

func batch(s *steps) string {
	const count = 250
	sender := s.sender()
	batch := got(sender.NewMessageBatch(s.ctx, nil))
	for n := range count {
		body := fmt.Sprintf("%d %s", n, strings.Repeat("x", 100))
		must(batch.AddMessage(&sb.Message{Body: []byte(body), MessageID: pointer(fmt.Sprintf("id-%d", n))}, nil))
	}
	must(sender.SendMessageBatch(s.ctx, batch, nil))
	receiver := s.receiver()
	messages := s.take(receiver, count)
	for n, m := range messages {
		same(strings.Fields(string(m.Body))[0], fmt.Sprint(n), "order")
		same(m.MessageID, fmt.Sprintf("id-%d", n), "message id")
		same(*m.SequenceNumber, int64(n+1), "sequence number")
	}
	s.complete(receiver, messages...)
	s.gone()
	return ""
}

func receiveAndDelete(s *steps) string {
	s.send(text("a"), text("b"), text("c"))
	receiver := got(s.client.NewReceiverForQueue(s.queue,
		&sb.ReceiverOptions{ReceiveMode: sb.ReceiveModeReceiveAndDelete}))
	same(bodies(s.take(receiver, 3)), []string{"a", "b", "c"}, "bodies")
	s.gone()
	return ""
}

func abandon(s *steps) string {
	s.send(text("again"), text("second"))
	receiver := s.receiver()
	for count := range uint32(3) {
		m := s.takeOne(receiver)
		// A returned message regains its place, so it is before the second one.
		same([]any{string(m.Body), m.DeliveryCount, *m.SequenceNumber}, []any{"again", count + 1, int64(1)},
			fmt.Sprintf("delivery %d", count))
		if count < 2 {
			must(receiver.AbandonMessage(s.ctx, m, nil))
		} else {
			s.complete(receiver, m)
		}
	}
	m := s.takeOne(receiver)
	same([]any{string(m.Body), m.DeliveryCount}, []any{"second", uint32(1)}, "the other message")
	s.complete(receiver, m)
	s.gone()
	return ""
}

func abandonProperties(s *steps) string {
	s.send(&sb.Message{Body: []byte("m"), ApplicationProperties: map[string]any{"kept": "yes", "changed": "before"}})
	receiver := s.receiver()
	must(receiver.AbandonMessage(s.ctx, s.takeOne(receiver), &sb.AbandonMessageOptions{
		PropertiesToModify: map[string]any{"changed": "after", "added": int64(7)}}))
	second := s.takeOne(receiver)
	properties := map[string]any{"kept": "yes", "changed": "after", "added": int64(7)}
	same(second.ApplicationProperties, properties, "after abandoning")
	must(receiver.DeferMessage(s.ctx, second, &sb.DeferMessageOptions{PropertiesToModify: map[string]any{"deferred": true}}))
	third := got(receiver.ReceiveDeferredMessages(s.ctx, []int64{*second.SequenceNumber}, nil))
	properties["deferred"] = true
	same(third[0].ApplicationProperties, properties, "after deferring")
	same(string(third[0].Body), "m", "body")
	s.complete(receiver, third...)
	s.gone()
	return ""
}

func deferring(s *steps) string {
	s.send(text("later"), text("now"))
	receiver := s.receiver()
	first := s.takeOne(receiver)
	must(receiver.DeferMessage(s.ctx, first, nil))
	second := s.takeOne(receiver)
	same(string(second.Body), "now", "after the deferral")
	s.complete(receiver, second)
	s.nothing(receiver, time.Second)
	seen := got(receiver.PeekMessages(s.ctx, 10, nil))
	same(bodies(seen), []string{"later"}, "peek")
	same(seen[0].State, sb.MessageStateDeferred, "state in peek")
	numbers := []int64{*first.SequenceNumber}
	messages := got(receiver.ReceiveDeferredMessages(s.ctx, numbers, nil))
	same(bodies(messages), []string{"later"}, "by number")
	same(*messages[0].SequenceNumber, numbers[0], "sequence number")
	s.complete(receiver, messages...)
	_, err := receiver.ReceiveDeferredMessages(s.ctx, numbers, nil)
	expectCode(err, sb.CodeNotFound)
	s.gone()
	return ""
}

func deadLetter(s *steps) string {
	s.send(&sb.Message{Body: []byte("poison"), MessageID: pointer("p"), ApplicationProperties: map[string]any{"kept": "yes"}})
	receiver := s.receiver()
	m := s.takeOne(receiver)
	must(receiver.DeadLetterMessage(s.ctx, m, &sb.DeadLetterOptions{
		Reason: pointer("a reason"), ErrorDescription: pointer("what was wrong with it")}))
	s.gone()
	graves := s.graves()
	letter := s.takeOne(graves)
	same([]any{string(letter.Body), letter.MessageID, *letter.SequenceNumber}, []any{"poison", "p", *m.SequenceNumber}, "message")
	same(value(letter.DeadLetterReason), "a reason", "reason")
	same(value(letter.DeadLetterErrorDescription), "what was wrong with it", "description")
	same(letter.DeadLetterSource, (*string)(nil), "source")
	same(letter.ApplicationProperties["kept"], "yes", "property")
	again := letter.Message()
	again.Body = append(again.Body, ", mended"...)
	s.send(again)
	s.complete(graves, letter)
	s.sees(graves, 10)
	resubmitted := s.takeOne(receiver)
	same(string(resubmitted.Body), "poison, mended", "resubmitted")
	s.complete(receiver, resubmitted)
	s.gone()
	return ""
}

func deadLetterProperties(s *steps) string {
	s.send(&sb.Message{Body: []byte("poison"), ApplicationProperties: map[string]any{"kept": "yes", "changed": "before"}})
	receiver := s.receiver()
	must(receiver.DeadLetterMessage(s.ctx, s.takeOne(receiver), &sb.DeadLetterOptions{Reason: pointer("r"),
		ErrorDescription: pointer("d"), PropertiesToModify: map[string]any{"changed": "after", "added": int64(7)}}))
	graves := s.graves()
	letter := s.takeOne(graves)
	same(letter.ApplicationProperties, map[string]any{"kept": "yes", "changed": "after", "added": int64(7),
		"DeadLetterReason": "r", "DeadLetterErrorDescription": "d"}, "properties")
	s.complete(graves, letter)
	s.sees(graves, 10)
	return ""
}

func soon(wait time.Duration) time.Time { return time.Now().Add(wait).UTC().Truncate(time.Millisecond) }

// arrivesWhenDue: the messages are there as scheduled, then come out, at their time and not before.
func arrivesWhenDue(s *steps, due time.Time, expected ...string) []*sb.ReceivedMessage {
	receiver := s.receiver()
	peeked := got(receiver.PeekMessages(s.ctx, 10, nil))
	same(bodies(peeked), expected, "peek")
	for _, m := range peeked {
		same(m.State, sb.MessageStateScheduled, "state in peek")
	}
	s.nothing(receiver, 500*time.Millisecond)
	messages := s.take(receiver, len(expected))
	if time.Now().Before(due) {
		fail("it came before its time")
	}
	same(bodies(messages), expected, "bodies")
	for _, m := range messages {
		same(m.ScheduledEnqueueTime.UTC(), due, "scheduled time")
		if m.EnqueuedTime.Before(due) {
			fail("enqueued at %v, due %v", m.EnqueuedTime, due)
		}
	}
	s.complete(receiver, messages...)
	s.gone()
	return peeked
}

func schedule(s *steps) string {
	due := soon(3 * time.Second)
	numbers := got(s.sender().ScheduleMessages(s.ctx, []*sb.Message{text("one"), text("two")}, due, nil))
	for n, m := range arrivesWhenDue(s, due, "one", "two") {
		same(*m.SequenceNumber, numbers[n], "number in peek")
	}
	return ""
}

func cancelScheduled(s *steps) string {
	sender := s.sender()
	numbers := got(sender.ScheduleMessages(s.ctx, []*sb.Message{text("no"), text("yes")}, soon(3*time.Second), nil))
	must(sender.CancelScheduledMessages(s.ctx, numbers[:1], nil))
	expectCode(sender.CancelScheduledMessages(s.ctx, numbers[:1], nil), sb.CodeNotFound)
	receiver := s.receiver()
	m := s.takeOne(receiver)
	same(string(m.Body), "yes", "what was not cancelled")
	s.complete(receiver, m)
	s.nothing(receiver, time.Second)
	s.gone()
	return ""
}

func scheduleByAnnotation(s *steps) string {
	due := soon(3 * time.Second)
	s.send(&sb.Message{Body: []byte("dated"), ScheduledEnqueueTime: &due})
	arrivesWhenDue(s, due, "dated")
	return ""
}

func peek(s *steps) string {
	var expected []string
	var messages []*sb.Message
	for n := range 25 {
		expected = append(expected, fmt.Sprintf("m%d", n))
		messages = append(messages, text(expected[n]))
	}
	s.send(messages...)
	receiver := s.receiver()
	var pages []*sb.ReceivedMessage
	for {
		page := got(receiver.PeekMessages(s.ctx, 10, nil))
		if len(page) == 0 {
			break
		}
		if len(page) > 10 {
			fail("a page of %d", len(page))
		}
		pages = append(pages, page...)
	}
	same(bodies(pages), expected, "all pages")
	for n := 1; n < len(pages); n++ {
		if *pages[n].SequenceNumber <= *pages[n-1].SequenceNumber {
			fail("sequence numbers do not ascend at %d", n)
		}
	}
	middle := got(receiver.PeekMessages(s.ctx, 2, &sb.PeekMessagesOptions{FromSequenceNumber: pages[7].SequenceNumber}))
	same(bodies(middle), []string{"m7", "m8"}, "from a number on")
	first := s.takeOne(receiver)
	s.sees(receiver, 2, "m0", "m1") // a locked message is still seen
	s.complete(receiver, first)
	s.sees(receiver, 2, "m1", "m2")
	return ""
}

func lockDuration() time.Duration { return time.Duration(given.LockSeconds) * time.Second }

func renewLock(s *steps) string {
	s.send(text("mine"))
	receiver := s.receiver()
	m := s.takeOne(receiver)
	until := *m.LockedUntil
	for end := time.Now().Add(lockDuration() + 3*time.Second); time.Now().Before(end); {
		time.Sleep(1500 * time.Millisecond)
		must(receiver.RenewMessageLock(s.ctx, m, nil))
		if !m.LockedUntil.After(until) {
			fail("the lock ended %v, renewed until %v", until, m.LockedUntil)
		}
		until = *m.LockedUntil
	}
	s.nothing(s.receiver(), time.Second)
	s.complete(receiver, m)
	s.gone()
	return ""
}

func lockLost(s *steps) string {
	s.send(text("slow"))
	receiver := s.receiver()
	m := s.takeOne(receiver)
	time.Sleep(lockDuration() + 700*time.Millisecond)
	expectCode(receiver.CompleteMessage(s.ctx, m, nil), sb.CodeLockLost)
	expectCode(receiver.RenewMessageLock(s.ctx, m, nil), sb.CodeLockLost)
	again := s.takeOne(receiver)
	same([]any{string(again.Body), again.DeliveryCount}, []any{"slow", uint32(2)}, "second delivery")
	if again.LockToken == m.LockToken {
		fail("the same lock token")
	}
	s.complete(receiver, again)
	s.gone()
	return ""
}

func maxDelivery(s *steps) string {
	s.send(text("unwanted"))
	receiver := s.receiver()
	for range 2 {
		must(receiver.AbandonMessage(s.ctx, s.takeOne(receiver), nil))
	}
	s.nothing(receiver, time.Second)
	graves := s.graves()
	letter := s.takeOne(graves)
	same(string(letter.Body), "unwanted", "body")
	same(value(letter.DeadLetterReason), "MaxDeliveryCountExceeded", "reason")
	same(value(letter.DeadLetterErrorDescription), "Message could not be consumed after 2 delivery attempts.", "description")
	same(letter.DeliveryCount, uint32(3), "delivery count")
	s.complete(graves, letter)
	s.gone()
	s.sees(graves, 10)
	return ""
}

func ttlDeadLetter(s *steps) string {
	s.send(text("by default"), &sb.Message{Body: []byte("wanted longer"), TimeToLive: pointer(time.Hour)})
	graves := s.graves()
	letters := s.take(graves, 2)
	same(bodies(letters), []string{"by default", "wanted longer"}, "expired")
	for _, letter := range letters {
		same(value(letter.DeadLetterReason), "TTLExpiredException", "reason")
		same(value(letter.DeadLetterErrorDescription), "The message expired and was dead lettered.", "description")
	}
	s.complete(graves, letters...)
	s.gone()
	return ""
}

func duplicates(s *steps) string {
	message := func(id, body string) *sb.Message { return &sb.Message{Body: []byte(body), MessageID: &id} }
	sender := s.sender()
	must(sender.SendMessage(s.ctx, message("a", "first"), nil))
	must(sender.SendMessage(s.ctx, message("a", "repeated"), nil))
	batch := got(sender.NewMessageBatch(s.ctx, nil))
	for _, m := range []*sb.Message{message("b", "second"), message("a", "in a batch"), message("b", "twice in it")} {
		must(batch.AddMessage(m, nil))
	}
	must(sender.SendMessageBatch(s.ctx, batch, nil))
	receiver := s.receiver()
	messages := s.take(receiver, 2)
	same(bodies(messages), []string{"first", "second"}, "without duplicates")
	s.complete(receiver, messages...)
	s.send(message("a", "after the completion"), message("c", "third"))
	m := s.takeOne(receiver)
	same(string(m.Body), "third", "after the completion")
	s.complete(receiver, m)
	s.gone()
	return ""
}

func largeMessage(s *steps) string {
	body := make([]byte, 900*1024)
	_ = got(rand.Read(body))
	s.send(&sb.Message{Body: body})
	receiver := s.receiver()
	m := s.takeOne(receiver)
	if !bytes.Equal(m.Body, body) {
		fail("the body came back different")
	}
	s.complete(receiver, m)
	s.gone()
	return ""
}

func tooLarge(s *steps) string {
	sender := s.sender()
	err := sender.SendMessage(s.ctx, &sb.Message{Body: make([]byte, 1200*1024)}, nil)
	if !errors.Is(err, sb.ErrMessageTooLarge) {
		fail("expected ErrMessageTooLarge, got %v", err)
	}
	must(sender.SendMessage(s.ctx, text("small"), nil))
	receiver := s.receiver()
	m := s.takeOne(receiver)
	same(string(m.Body), "small", "after the refusal")
	s.complete(receiver, m)
	s.gone()
	return err.Error()
}

func propertiesRoundTrip(s *steps) string {
	properties := map[string]any{"text": "zażółć 漢字 🚀", "empty": "", "yes": true, "no": false, "int8": int8(-8),
		"int16": int16(-1616), "int32": int32(-323232), "int64": int64(-1 << 63), "uint8": uint8(255),
		"uint16": uint16(65535), "uint32": uint32(4294967295), "uint64": uint64(1<<64 - 1), "zero": int64(0),
		"float32": float32(0.5), "float64": 3.141592653589793, "tiny": 5e-324, "bytes": []byte{0, 255},
		"uuid": amqp.UUID{0, 0x11, 0x22, 0x33}, "date": time.Date(2024, 2, 29, 12, 30, 15, 123000000, time.UTC),
		"none": nil, "klucz ż": "in the key too"}
	minutes := 5 * time.Minute
	s.send(&sb.Message{Body: []byte("body ż"), ApplicationProperties: properties, MessageID: pointer("the id"),
		CorrelationID: pointer("the correlation"), ContentType: pointer("text/plain; charset=utf-8"),
		Subject: pointer("subject ż"), To: pointer("to/somewhere"), ReplyTo: pointer("reply/to"),
		ReplyToSessionID: pointer("reply session"), PartitionKey: pointer("key"), TimeToLive: &minutes})
	receiver := s.receiver()
	m := s.takeOne(receiver)
	same(string(m.Body), "body ż", "body")
	same(m.MessageID, "the id", "message id")
	same(value(m.CorrelationID), "the correlation", "correlation id")
	same(value(m.ContentType), "text/plain; charset=utf-8", "content type")
	same(value(m.Subject), "subject ż", "subject")
	same(value(m.To), "to/somewhere", "to")
	same(value(m.ReplyTo), "reply/to", "reply to")
	same(value(m.ReplyToSessionID), "reply session", "reply to session")
	same(value(m.PartitionKey), "key", "partition key")
	same(m.SessionID, (*string)(nil), "session id")
	same(*m.TimeToLive, minutes, "time to live")
	same(m.ExpiresAt.Sub(*m.EnqueuedTime), minutes, "expiry")
	for key, expected := range properties {
		actual, present := m.ApplicationProperties[key]
		if moment, isTime := actual.(time.Time); isTime {
			actual = moment.UTC()
		}
		if !present {
			fail("the property %q is missing", key)
		}
		same(actual, expected, key)
	}
	same(len(m.ApplicationProperties), len(properties), "number of properties")
	s.complete(receiver, m)
	s.gone()
	return ""
}

func bodyKinds(s *steps) string {
	all := []sb.AMQPAnnotatedMessageBody{
		{Value: "a string"}, {Value: int64(42)}, {Value: map[string]any{"a": int64(1), "b": "x"}},
		{Value: []any{int64(1), "x", true}},
		{Sequence: [][]any{{int64(1), "two", 3.5}, {"x"}}},
		{Data: [][]byte{[]byte("one"), {}, []byte("three")}}, {Data: [][]byte{{}}},
	}
	sender := s.sender()
	for _, body := range all {
		must(sender.SendAMQPAnnotatedMessage(s.ctx, &sb.AMQPAnnotatedMessage{Body: body}, nil))
	}
	receiver := s.receiver()
	messages := s.take(receiver, len(all))
	for n, m := range messages {
		// By text: an empty slice may come back as nil, a map with keys of another static type.
		same(fmt.Sprintf("%v", m.RawAMQPMessage.Body), fmt.Sprintf("%v", all[n]), fmt.Sprintf("body %d", n))
	}
	s.complete(receiver, messages...)
	s.gone()
	return ""
}

func emptyReceive(s *steps) string {
	receiver := s.receiver()
	for _, body := range []string{"m0", "m1"} {
		s.nothing(receiver, time.Second)
		s.send(text(body))
		m := s.takeOne(receiver)
		same([]any{string(m.Body), m.DeliveryCount}, []any{body, uint32(1)}, "after the empty receive")
		s.complete(receiver, m)
	}
	s.gone()
	return ""
}

func forward(s *steps) string {
	s.send(&sb.Message{Body: []byte("onward"), MessageID: pointer("f"), ApplicationProperties: map[string]any{"kept": "yes"}})
	receiver := got(s.client.NewReceiverForQueue(given.Destinations["queue/forward"], nil))
	m := s.takeOne(receiver)
	same([]any{string(m.Body), m.MessageID}, []any{"onward", "f"}, "forwarded")
	same(m.ApplicationProperties, map[string]any{"kept": "yes"}, "properties")
	if m.EnqueuedSequenceNumber == nil {
		fail("no number of the first queue")
	}
	same([]int64{*m.SequenceNumber, *m.EnqueuedSequenceNumber}, []int64{1, 1}, "numbers")
	s.complete(receiver, m)
	return ""
}

func forwardDeadLetters(s *steps) string {
	s.send(text("poison"))
	receiver := s.receiver()
	must(receiver.DeadLetterMessage(s.ctx, s.takeOne(receiver), &sb.DeadLetterOptions{
		Reason: pointer("r"), ErrorDescription: pointer("d")}))
	graves := got(s.client.NewReceiverForQueue(given.Destinations["queue/forward-dead-letters"], nil))
	m := s.takeOne(graves)
	same([]string{string(m.Body), value(m.DeadLetterReason), value(m.DeadLetterErrorDescription), value(m.DeadLetterSource)},
		[]string{"poison", "r", "d", s.queue}, "forwarded dead letter")
	s.complete(graves, m)
	s.gone()
	return ""
}

var queueScenarios = map[string]func(*steps) string{
	"queue/send-receive-complete":  sendReceiveComplete,
	"queue/batch":                  batch,
	"queue/receive-and-delete":     receiveAndDelete,
	"queue/abandon":                abandon,
	"queue/abandon-properties":     abandonProperties,
	"queue/defer":                  deferring,
	"queue/dead-letter":            deadLetter,
	"queue/dead-letter-properties": deadLetterProperties,
	"queue/schedule":               schedule,
	"queue/cancel-scheduled":       cancelScheduled,
	"queue/schedule-by-annotation": scheduleByAnnotation,
	"queue/peek":                   peek,
	"queue/renew-lock":             renewLock,
	"queue/lock-lost":              lockLost,
	"queue/max-delivery":           maxDelivery,
	"queue/ttl-dead-letter":        ttlDeadLetter,
	"queue/duplicates":             duplicates,
	"queue/large-message":          largeMessage,
	"queue/too-large":              tooLarge,
	"queue/properties-round-trip":  propertiesRoundTrip,
	"queue/body-kinds":             bodyKinds,
	"queue/empty-receive":          emptyReceive,
	"queue/forward":                forward,
	"queue/forward-dead-letters":   forwardDeadLetters,
}
