// azservicebus with a topic and its subscriptions. Names: runner/scenarios.py, shapes: runner/topics.py.
package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

type properties = map[string]any

var deadLetters = &sb.ReceiverOptions{SubQueue: sb.SubQueueDeadLetter}

// of opens a subscription of the scenario's topic.
func (s *steps) of(name string, options *sb.ReceiverOptions) *sb.Receiver {
	return got(s.client.NewReceiverForSubscription(s.queue, name, options))
}

// holdsIn takes and completes exactly these messages, in this order; nothing else is in the subscription.
func (s *steps) holdsIn(name string, options *sb.ReceiverOptions, expected ...string) []*sb.ReceivedMessage {
	receiver := s.of(name, options)
	var all []*sb.ReceivedMessage
	if len(expected) > 0 {
		all = s.take(receiver, len(expected))
	}
	same(bodies(all), append([]string{}, expected...), name)
	s.complete(receiver, all...)
	s.sees(receiver, 10)
	must(receiver.Close(s.ctx))
	return all
}

func (s *steps) holds(name string, expected ...string) []*sb.ReceivedMessage {
	return s.holdsIn(name, nil, expected...)
}

// receiveError is what the SDK says to an attempt to receive from what `receiver` names.
func (s *steps) receiveError(receiver *sb.Receiver) error {
	_, err := receiver.ReceiveMessages(s.ctx, 1, nil)
	return err
}

func (s *steps) sendError(address string) error {
	return got(s.client.NewSender(address, nil)).SendMessage(s.ctx, text("x"), nil)
}

func with(body string, values properties) *sb.Message {
	return &sb.Message{Body: []byte(body), ApplicationProperties: values}
}

func topicPublish(s *steps) string {
	one := with("one", properties{"kept": "yes"})
	one.MessageID, one.Subject = pointer("m1"), pointer("s")
	s.send(one, text("two"))
	for _, name := range []string{"a", "b"} {
		all := s.holds(name, "one", "two")
		same([]any{all[0].MessageID, value(all[0].Subject), all[0].ApplicationProperties},
			[]any{"m1", "s", properties{"kept": "yes"}}, "message")
		for n, m := range all {
			if m.EnqueuedSequenceNumber == nil {
				fail("no number of the topic")
			}
			same([]int64{*m.SequenceNumber, *m.EnqueuedSequenceNumber, int64(m.DeliveryCount)},
				[]int64{int64(n + 1), int64(n + 1), 1}, "numbers") // the SDK adds one to the count
		}
	}
	s.send(text("three"))
	s.holds("b", "three")
	s.holds("a", "three")
	return ""
}

func topicBatch(s *steps) string {
	sender := s.sender()
	batch := got(sender.NewMessageBatch(s.ctx, nil))
	var expected []string
	for n := range 100 {
		expected = append(expected, fmt.Sprint(n))
		must(batch.AddMessage(&sb.Message{Body: []byte(fmt.Sprint(n)), MessageID: pointer(fmt.Sprintf("id-%d", n))}, nil))
	}
	must(sender.SendMessageBatch(s.ctx, batch, nil))
	for _, name := range []string{"a", "b"} {
		for n, m := range s.holds(name, expected...) {
			same(m.MessageID, fmt.Sprintf("id-%d", n), "message id")
			same(*m.SequenceNumber, int64(n+1), "sequence number")
		}
	}
	return ""
}

func topicSettle(s *steps) string {
	s.send(text("complete"), text("abandon"), text("defer"), text("dead-letter"))
	receiver := s.of("a", nil)
	all := s.take(receiver, 4)
	s.complete(receiver, all[0])
	must(receiver.AbandonMessage(s.ctx, all[1], &sb.AbandonMessageOptions{PropertiesToModify: properties{"added": "1"}}))
	must(receiver.DeferMessage(s.ctx, all[2], nil))
	must(receiver.DeadLetterMessage(s.ctx, all[3], &sb.DeadLetterOptions{
		Reason: pointer("r"), ErrorDescription: pointer("d")}))
	again := s.takeOne(receiver)
	same([]any{string(again.Body), again.DeliveryCount, again.ApplicationProperties},
		[]any{"abandon", uint32(2), properties{"added": "1"}}, "abandoned")
	s.complete(receiver, again)
	deferred := got(receiver.ReceiveDeferredMessages(s.ctx, []int64{*all[2].SequenceNumber}, nil))
	same(bodies(deferred), []string{"defer"}, "deferred")
	s.complete(receiver, deferred...)
	s.sees(receiver, 10)
	letter := s.holdsIn("a", deadLetters, "dead-letter")[0]
	same([]string{value(letter.DeadLetterReason), value(letter.DeadLetterErrorDescription)}, []string{"r", "d"}, "why")
	return ""
}

func topicReceiveAndDelete(s *steps) string {
	s.send(text("one"), text("two"))
	receiver := s.of("a", &sb.ReceiverOptions{ReceiveMode: sb.ReceiveModeReceiveAndDelete})
	same(bodies(s.take(receiver, 2)), []string{"one", "two"}, "bodies")
	s.holds("a")
	s.holds("b", "one", "two")
	return ""
}

func topicDeadLetter(s *steps) string {
	poison := with("poison", properties{"kept": "yes"})
	poison.MessageID = pointer("p")
	s.send(poison)
	receiver := s.of("a", nil)
	m := s.takeOne(receiver)
	must(receiver.DeadLetterMessage(s.ctx, m, &sb.DeadLetterOptions{
		Reason: pointer("a reason"), ErrorDescription: pointer("more")}))
	s.sees(receiver, 10)
	s.holdsIn("b", deadLetters)
	letter := s.holdsIn("a", deadLetters, "poison")[0]
	same([]any{letter.MessageID, *letter.SequenceNumber, letter.ApplicationProperties["kept"]},
		[]any{"p", *m.SequenceNumber, "yes"}, "message")
	same([]string{value(letter.DeadLetterReason), value(letter.DeadLetterErrorDescription)},
		[]string{"a reason", "more"}, "why")
	s.holds("b", "poison") // its own copy
	return ""
}

func topicSession(s *steps) string {
	s.send(into("x", "x1")...)
	s.send(text("nobody's"))
	s.send(into("y", "y1")...)
	s.send(into("x", "x2")...)
	receiver := got(s.client.AcceptSessionForSubscription(s.ctx, s.queue, "s", "x", nil))
	same(receiver.SessionID(), "x", "session id")
	must(receiver.SetSessionState(s.ctx, []byte("halfway"), nil))
	all := s.take(receiver, 2)
	same(bodies(all), []string{"x1", "x2"}, "session x")
	same(value(all[0].SessionID), "x", "session id of a message")
	s.complete(receiver, all...)
	same(got(receiver.GetSessionState(s.ctx, nil)), []byte("halfway"), "state")
	must(receiver.RenewSessionLock(s.ctx, nil))
	must(receiver.Close(s.ctx))
	next := got(s.client.AcceptNextSessionForSubscription(s.ctx, s.queue, "s", nil))
	same(next.SessionID(), "y", "the other session")
	other := s.takeOne(next)
	same(string(other.Body), "y1", "body")
	s.complete(next, other)
	letter := s.holdsIn("s", deadLetters, "nobody's")[0]
	same(value(letter.DeadLetterReason), "Session ID is null.", "why")
	s.holds("p", "x1", "nobody's", "y1", "x2") // it has no sessions
	var listed []string
	for pager := s.client.NewListSessionsForSubscriptionPager(s.queue, "s", nil); pager.More(); {
		listed = append(listed, got(pager.NextPage(s.ctx)).Sessions...)
	}
	same(listed, []string{"x"}, "sessions with messages or state")
	return expectCondition(s.receiveError(s.of("s", nil)), amqp.ErrCondNotAllowed)
}

func topicDefer(s *steps) string {
	s.send(text("later"), text("now"))
	receiver := s.of("a", nil)
	first := s.takeOne(receiver)
	must(receiver.DeferMessage(s.ctx, first, nil))
	second := s.takeOne(receiver)
	same(string(second.Body), "now", "after the deferral")
	s.complete(receiver, second)
	s.nothing(receiver, 300*time.Millisecond)
	seen := got(receiver.PeekMessages(s.ctx, 10, nil))
	same(bodies(seen), []string{"later"}, "peek")
	same(seen[0].State, sb.MessageStateDeferred, "state in peek")
	numbers := []int64{*first.SequenceNumber}
	_, err := s.of("b", nil).ReceiveDeferredMessages(s.ctx, numbers, nil)
	expectCode(err, sb.CodeNotFound)
	deferred := got(receiver.ReceiveDeferredMessages(s.ctx, numbers, nil))
	same(bodies(deferred), []string{"later"}, "by number")
	s.complete(receiver, deferred...)
	s.sees(receiver, 10)
	s.holds("b", "later", "now")
	return ""
}

func topicPeek(s *steps) string {
	var messages []*sb.Message
	var expected []string
	for n := range 12 {
		expected = append(expected, fmt.Sprintf("m%d", n))
		messages = append(messages, text(expected[n]))
	}
	s.send(messages...)
	receiver := s.of("a", nil)
	same(bodies(got(receiver.PeekMessages(s.ctx, 5, nil))), expected[:5], "first page")
	same(bodies(got(receiver.PeekMessages(s.ctx, 50, nil))), expected[5:], "the rest")
	same(bodies(got(receiver.PeekMessages(s.ctx, 5, nil))), []string{}, "after the last")
	first := s.takeOne(receiver)
	s.sees(receiver, 2, "m0", "m1") // a locked message is still seen
	s.complete(receiver, first)
	s.sees(receiver, 2, "m1", "m2")
	s.sees(s.of("b", nil), 2, "m0", "m1")
	return ""
}

func topicSchedule(s *steps) string {
	sender := s.sender()
	due := time.Now().Add(2 * time.Second).UTC().Truncate(time.Millisecond)
	numbers := got(sender.ScheduleMessages(s.ctx, []*sb.Message{text("one"), text("two")}, due, nil))
	same(len(numbers), 2, "sequence numbers")
	s.sees(s.of("a", nil), 10) // copies are made when it is due
	for _, name := range []string{"a", "b"} {
		for _, m := range s.holds(name, "one", "two") {
			same(m.ScheduledEnqueueTime.UTC(), due, "scheduled time")
			if m.EnqueuedTime.Before(due) || time.Now().Before(due) {
				fail("enqueued at %v, due %v", m.EnqueuedTime, due)
			}
		}
	}
	dated := time.Now().Add(time.Second).UTC()
	s.send(&sb.Message{Body: []byte("dated"), ScheduledEnqueueTime: &dated})
	for _, name := range []string{"a", "b"} {
		s.holds(name, "dated")
	}
	if time.Now().Before(dated) {
		fail("it came before its time")
	}
	return ""
}

func topicCancelScheduled(s *steps) string {
	sender := s.sender()
	numbers := got(sender.ScheduleMessages(s.ctx, []*sb.Message{text("no"), text("yes")}, time.Now().Add(2*time.Second), nil))
	must(sender.CancelScheduledMessages(s.ctx, numbers[:1], nil))
	expectCode(sender.CancelScheduledMessages(s.ctx, numbers[:1], nil), sb.CodeNotFound)
	for _, name := range []string{"a", "b"} {
		s.holds(name, "yes")
	}
	expectCode(sender.CancelScheduledMessages(s.ctx, numbers[1:], nil), sb.CodeNotFound)
	return ""
}

func topicDuplicates(s *steps) string {
	message := func(identity, body string) *sb.Message {
		return &sb.Message{Body: []byte(body), MessageID: &identity}
	}
	s.send(message("a", "first"), message("a", "repeated"))
	sender := s.sender()
	batch := got(sender.NewMessageBatch(s.ctx, nil))
	for _, m := range []*sb.Message{message("b", "second"), message("a", "in a batch"), message("b", "twice in it")} {
		must(batch.AddMessage(m, nil))
	}
	must(sender.SendMessageBatch(s.ctx, batch, nil))
	s.holds("a", "first", "second")
	s.send(message("a", "after the completion"), message("c", "third"))
	s.holds("a", "third")
	s.holds("b", "first", "second", "third")
	return ""
}

func topicSqlFilter(s *steps) string {
	message := func(body, subject string, values properties) *sb.Message {
		m := with(body, values)
		m.Subject = &subject
		return m
	}
	s.send(message("m1", "order-1", properties{"color": "red", "quantity": int32(5)}),
		message("m2", "order-2", properties{"color": "blue", "quantity": int64(50)}),
		message("m3", "other", properties{"quantity": 1.0}),
		message("m4", "Order", properties{"color": "RED", "quantity": uint16(20)}))
	s.holds("red", "m1")
	s.holds("large", "m2")
	s.holds("colorless", "m3")
	s.holds("either", "m2", "m3", "m4") // one copy, however many rules match
	return ""
}

func topicCorrelationFilter(s *steps) string {
	m1 := with("m1", properties{"region": "eu", "n": int64(2)})
	m1.Subject, m1.CorrelationID = pointer("order"), pointer("c-1")
	m2 := with("m2", properties{"region": "us", "n": "2"})
	m2.Subject, m2.CorrelationID = pointer("Order"), pointer("c-1")
	m3 := &sb.Message{Body: []byte("m3"), MessageID: pointer("m-1"), To: pointer("there"), ReplyTo: pointer("back"),
		ContentType: pointer("text/x")}
	s.send(m1, m2, m3)
	s.holds("label", "m1")
	s.holds("two-fields", "m1")
	s.holds("number", "m1")
	s.holds("identity", "m3")
	return ""
}

func topicTrueFalseFilter(s *steps) string {
	s.send(text("m1"), with("m2", properties{"wanted": "yes"}))
	s.holds("yes", "m1", "m2")
	s.holds("both", "m1", "m2")
	s.holds("no")
	return ""
}

func topicNobody(s *steps) string {
	s.send(text("unwanted")) // accepted and dropped
	s.holds("no")
	return ""
}

func topicAction(s *steps) string {
	sent := properties{"color": "red", "quantity": int32(7), "kept": "yes"}
	m := with("m", sent)
	m.Subject, m.MessageID = pointer("label"), pointer("id")
	s.send(m)
	plain := s.holds("plain", "m")[0]
	same([]any{value(plain.Subject), plain.ApplicationProperties}, []any{"label", sent}, "another subscription's copy")
	changed := s.holds("changed", "m")[0]
	same([]string{value(changed.Subject), changed.MessageID}, []string{"relabelled", "id"}, "system properties")
	same(changed.ApplicationProperties, // an existing property keeps its type
		properties{"quantity": int32(14), "kept": "yes", "added": "by rule", "RuleName": "change"}, "changed")
	for n, m := range s.holds("copies", "m", "m", "m") {
		expected := properties{"color": "red", "quantity": int32(7), "kept": "yes"}
		if n > 0 {
			expected["mark"], expected["RuleName"] = int64(n), fmt.Sprintf("marked-%d", n)
		}
		same(m.ApplicationProperties, expected, "one copy for each action")
		same(*m.SequenceNumber, int64(n+1), "number")
	}
	return ""
}

func topicFilterError(s *steps) string {
	s.send(with("bad", properties{"quantity": int64(0)}), with("good", properties{"quantity": int64(10)}))
	s.holds("strict", "good")
	s.holds("other", "bad", "good")
	letter := s.holdsIn("strict", deadLetters, "bad")[0]
	same(value(letter.DeadLetterReason), "FilterException", "why")
	why := value(letter.DeadLetterErrorDescription)
	if !strings.Contains(why, "division") {
		fail("no rule: %s", why)
	}
	return why
}

func topicTTL(s *steps) string {
	s.send(text("by default"), &sb.Message{Body: []byte("wanted longer"), TimeToLive: pointer(time.Hour)})
	for _, letter := range s.holdsIn("short", deadLetters, "by default", "wanted longer") {
		same([]string{value(letter.DeadLetterReason), value(letter.DeadLetterErrorDescription)},
			[]string{"TTLExpiredException", "The message expired and was dead lettered."}, "why")
	}
	s.holds("short")
	s.holds("long", "by default", "wanted longer")
	return ""
}

// topicStream: two receivers that compete, each asking for some at a time.
func topicStream(s *steps) string {
	const count = 60
	var expected []string
	for n := range count {
		expected = append(expected, fmt.Sprintf("m%d", n))
	}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	came := make(chan string, 10*count)
	failures := make(chan error, 2)
	for range 2 {
		receiver := s.of("a", nil)
		go func() {
			for {
				messages, err := receiver.ReceiveMessages(ctx, 7, nil)
				for _, m := range messages {
					if err := receiver.CompleteMessage(s.ctx, m, nil); err != nil {
						failures <- err
						return
					}
					came <- string(m.Body)
				}
				if err != nil {
					if ctx.Err() == nil {
						failures <- err
					}
					return
				}
			}
		}()
	}
	sender := s.sender()
	for _, body := range expected {
		must(sender.SendMessage(s.ctx, text(body), nil))
	}
	var all []string
	for len(all) < count {
		select {
		case body := <-came:
			all = append(all, body)
		case err := <-failures:
			must(err)
		case <-ctx.Done():
			fail("%d of %d messages came", len(all), count)
		}
	}
	slices.Sort(all)
	slices.Sort(expected)
	same(all, expected, "what came")
	s.sees(s.of("a", nil), 10)
	same(len(got(s.of("b", nil).PeekMessages(s.ctx, 100, nil))), count, "the other subscription")
	return ""
}

// topicCrowd: four connections publish at once, each message twice, and every subscription has its share once.
func topicCrowd(s *steps) string {
	const senders, each = 4, 50
	done := make(chan error, senders)
	for sender := range senders {
		go func() {
			done <- func() error {
				client, err := sb.NewClientFromConnectionString(given.Brokers["queues"].Emulator,
					&sb.ClientOptions{RetryOptions: noRetry})
				if err != nil {
					return err
				}
				defer closeSoon(client)
				link, err := client.NewSender(s.queue, nil)
				if err != nil {
					return err
				}
				for n := range 2 * each {
					n %= each
					m := with(fmt.Sprintf("%d-%d", sender, n), properties{"n": int64(n), "sender": fmt.Sprint(sender)})
					m.MessageID = pointer(string(m.Body))
					if err := link.SendMessage(s.ctx, m, nil); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range senders {
		must(<-done)
	}
	for name, expected := range map[string]int{"all": each, "even": each / 2, "marked": each / 10, "one": each} {
		last := map[string]int64{}
		receiver := s.of(name, nil)
		messages := s.take(receiver, senders*expected)
		for number, m := range messages {
			sender, n := m.ApplicationProperties["sender"].(string), m.ApplicationProperties["n"].(int64)
			if before, ok := last[sender]; ok && n <= before {
				fail("'%s': message %d of sender %s came after %d", name, n, sender, before)
			}
			last[sender] = n
			same(*m.SequenceNumber, int64(number+1), "number in "+name)
			same(m.ApplicationProperties["marked"] == true, name == "marked", "marked in "+name)
		}
		s.complete(receiver, messages...)
		s.sees(receiver, 10)
	}
	return ""
}

func onward() *sb.Message {
	m := with("onward", properties{"kept": "yes"})
	m.MessageID = pointer("f")
	return m
}

func topicForwardToQueue(s *steps) string {
	s.send(onward())
	receiver := got(s.client.NewReceiverForQueue(given.Destinations["topic/forward-to-queue"], nil))
	m := s.takeOne(receiver)
	same([]any{string(m.Body), m.MessageID, m.ApplicationProperties},
		[]any{"onward", "f", properties{"kept": "yes"}}, "forwarded")
	s.complete(receiver, m)
	s.holds("b", "onward")
	return expectCondition(s.receiveError(s.of("a", nil)), amqp.ErrCondNotAllowed)
}

func topicForwardFromQueue(s *steps) string {
	sender := got(s.client.NewSender(given.Sources["topic/forward-from-queue"], nil))
	must(sender.SendMessage(s.ctx, onward(), nil))
	for _, name := range []string{"a", "b"} {
		m := s.holds(name, "onward")[0]
		same([]any{m.MessageID, m.ApplicationProperties}, []any{"f", properties{"kept": "yes"}}, "forwarded")
	}
	return ""
}

func topicWrongDirection(s *steps) string {
	expectCondition(s.sendError(s.queue+"/Subscriptions/a"), amqp.ErrCondNotAllowed)
	expectCondition(s.sendError(s.queue+"/Subscriptions/a/$DeadLetterQueue"), amqp.ErrCondNotAllowed)
	expectCondition(s.receiveError(s.receiver()), amqp.ErrCondNotAllowed)
	return expectCondition(s.receiveError(s.of("no-such", nil)), amqp.ErrCondNotFound)
}

func topicLetterCase(s *steps) string {
	topic := s.queue
	s.queue = strings.ToUpper(topic)
	s.send(text("shouted"))
	s.queue = strings.Replace(topic, "topic", "ToPiC", 1)
	receiver := s.of("aUDIT", nil)
	m := s.takeOne(receiver)
	same(string(m.Body), "shouted", "body")
	must(receiver.DeadLetterMessage(s.ctx, m, nil))
	s.sees(receiver, 10)
	s.holdsIn("AUDIT", deadLetters, "shouted")
	return ""
}

func exchangeSDK(s *steps) string {
	s.send(&sb.Message{Body: []byte("m1"), Subject: pointer("order.eu.paid")},
		&sb.Message{Body: []byte("m2"), Subject: pointer("order.us.open")}, text("m3"))
	s.holds("paid", "m1")
	s.holds("eu", "m1")
	keys := []string{"order.eu.paid", "order.us.open", ""}
	for n, m := range s.holds("all", "m1", "m2", "m3") {
		annotations := m.RawAMQPMessage.MessageAnnotations
		same([]any{annotations["x-exchange"], annotations["x-routing-key"]}, []any{s.queue, keys[n]}, "annotations")
	}
	return ""
}

var topicScenarios = map[string]func(*steps) string{
	"topic/publish":            topicPublish,
	"topic/batch":              topicBatch,
	"topic/settle":             topicSettle,
	"topic/receive-and-delete": topicReceiveAndDelete,
	"topic/dead-letter":        topicDeadLetter,
	"topic/session":            topicSession,
	"topic/defer":              topicDefer,
	"topic/peek":               topicPeek,
	"topic/schedule":           topicSchedule,
	"topic/cancel-scheduled":   topicCancelScheduled,
	"topic/duplicates":         topicDuplicates,
	"topic/sql-filter":         topicSqlFilter,
	"topic/correlation-filter": topicCorrelationFilter,
	"topic/true-false-filter":  topicTrueFalseFilter,
	"topic/nobody":             topicNobody,
	"topic/action":             topicAction,
	"topic/filter-error":       topicFilterError,
	"topic/ttl":                topicTTL,
	"topic/stream":             topicStream,
	"topic/crowd":              topicCrowd,
	"topic/forward-to-queue":   topicForwardToQueue,
	"topic/forward-from-queue": topicForwardFromQueue,
	"topic/wrong-direction":    topicWrongDirection,
	"topic/letter-case":        topicLetterCase,
	"exchange/sdk":             exchangeSDK,
}
