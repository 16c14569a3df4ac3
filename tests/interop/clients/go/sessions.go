// azservicebus with message sessions. Scenario names: runner/scenarios.py.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

func into(session string, bodies ...string) []*sb.Message {
	var messages []*sb.Message
	for _, body := range bodies {
		messages = append(messages, &sb.Message{Body: []byte(body), SessionID: &session})
	}
	return messages
}

func (s *steps) accept(session string) *sb.SessionReceiver {
	return got(s.client.AcceptSessionForQueue(s.ctx, s.queue, session, nil))
}

// expectCondition: the SDK has no code of its own for most refusals and hands go-amqp's error on.
func expectCondition(err error, condition amqp.ErrCond) string {
	var remote *amqp.Error
	if !errors.As(err, &remote) || remote.Condition != condition {
		fail("expected %s, got %T: %v", condition, err, err)
	}
	return err.Error()
}

func acceptNamed(s *steps) string {
	s.send(slices.Concat(into("a", "for a"), into("b", "for b"))...)
	receiver := s.accept("b")
	same(receiver.SessionID(), "b", "session id")
	if !receiver.LockedUntil().After(time.Now()) {
		fail("the lock ended %v", receiver.LockedUntil())
	}
	m := s.takeOne(receiver)
	same([]string{string(m.Body), value(m.SessionID)}, []string{"for b", "b"}, "message")
	s.complete(receiver, m)
	s.nothing(receiver, time.Second)
	s.nothing(s.accept("empty"), time.Second) // a session need not have messages
	return ""
}

func acceptNext(s *steps) string {
	s.send(into("only", "hello")...)
	receiver := got(s.client.AcceptNextSessionForQueue(s.ctx, s.queue, nil))
	same(receiver.SessionID(), "only", "session id")
	m := s.takeOne(receiver)
	same(string(m.Body), "hello", "body")
	s.complete(receiver, m)
	return ""
}

func acceptNextTimeOut(s *steps) string {
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Second)
	defer cancel()
	_, err := s.client.AcceptNextSessionForQueue(ctx, s.queue, nil)
	// The SDK tells the broker its own deadline less a hundredth, so either may be first.
	if errors.Is(err, context.DeadlineExceeded) {
		return err.Error()
	}
	return expectCode(err, sb.CodeTimeout)
}

func order(s *steps) string {
	var messages []*sb.Message
	for n := range 20 {
		messages = append(messages, into("x", fmt.Sprintf("x%d", n))...)
		messages = append(messages, into("y", fmt.Sprintf("y%d", n))...)
	}
	s.send(messages...)
	for _, session := range []string{"y", "x"} {
		receiver := s.accept(session)
		all := s.take(receiver, 20)
		for n, body := range bodies(all) {
			same(body, fmt.Sprintf("%s%d", session, n), "order")
		}
		s.complete(receiver, all...)
		if session == "x" { // the SDK peeks into all sessions
			s.sees(receiver, 10)
		}
		must(receiver.Close(s.ctx))
	}
	return ""
}

func state(s *steps) string {
	step := []byte{0, 's', 0xff}
	receiver := s.accept("s")
	same(len(got(receiver.GetSessionState(s.ctx, nil))), 0, "state of a new session")
	must(receiver.SetSessionState(s.ctx, step, nil))
	same(got(receiver.GetSessionState(s.ctx, nil)), step, "state")
	must(receiver.Close(s.ctx))
	other := s.accept("other")
	same(len(got(other.GetSessionState(s.ctx, nil))), 0, "state of another session")
	receiver = s.accept("s")
	same(got(receiver.GetSessionState(s.ctx, nil)), step, "state after accepting again")
	must(receiver.SetSessionState(s.ctx, nil, nil))
	same(len(got(receiver.GetSessionState(s.ctx, nil))), 0, "cleared state")
	return ""
}

func renewSession(s *steps) string {
	s.send(into("r", "long work")...)
	receiver := s.accept("r")
	m := s.takeOne(receiver)
	until := receiver.LockedUntil()
	for end := time.Now().Add(lockDuration() + 3*time.Second); time.Now().Before(end); {
		time.Sleep(1500 * time.Millisecond)
		must(receiver.RenewSessionLock(s.ctx, nil))
		if !receiver.LockedUntil().After(until) {
			fail("the lock ended %v, renewed until %v", until, receiver.LockedUntil())
		}
		until = receiver.LockedUntil()
	}
	s.complete(receiver, m)
	s.sees(receiver, 10)
	return ""
}

func lockedByAnother(s *steps) string {
	second := connectQueues()
	defer closeSoon(second)
	first := s.accept("mine")
	_, err := second.AcceptSessionForQueue(s.ctx, s.queue, "mine", nil)
	why := expectCondition(err, "com.microsoft:session-cannot-be-locked")
	must(first.Close(s.ctx))
	again := got(second.AcceptSessionForQueue(s.ctx, s.queue, "mine", nil)) // free again
	same(again.SessionID(), "mine", "session id")
	return why
}

func sessionDeferral(s *steps) string {
	s.send(into("d", "later", "now")...)
	receiver := s.accept("d")
	first := s.takeOne(receiver)
	must(receiver.DeferMessage(s.ctx, first, nil))
	second := s.takeOne(receiver)
	same(string(second.Body), "now", "after the deferral")
	s.complete(receiver, second)
	messages := got(receiver.ReceiveDeferredMessages(s.ctx, []int64{*first.SequenceNumber}, nil))
	same(bodies(messages), []string{"later"}, "by number")
	same(value(messages[0].SessionID), "d", "session id")
	s.complete(receiver, messages...)
	s.sees(receiver, 10)
	return ""
}

func sessionDeadLetter(s *steps) string {
	s.send(into("d", "poison")...)
	receiver := s.accept("d")
	must(receiver.DeadLetterMessage(s.ctx, s.takeOne(receiver), &sb.DeadLetterOptions{
		Reason: pointer("r"), ErrorDescription: pointer("d")}))
	s.sees(receiver, 10)
	graves := s.graves() // the dead-letter queue has no sessions
	letter := s.takeOne(graves)
	same([]string{string(letter.Body), value(letter.SessionID), value(letter.DeadLetterReason)},
		[]string{"poison", "d", "r"}, "dead letter")
	s.complete(graves, letter)
	s.sees(graves, 10)
	return ""
}

func missingIDRefused(s *steps) string {
	why := expectCondition(s.sender().SendMessage(s.ctx, text("nobody's"), nil), amqp.ErrCondNotAllowed)
	s.send(into("s", "somebody's")...)
	receiver := s.accept("s")
	m := s.takeOne(receiver)
	same(string(m.Body), "somebody's", "body")
	s.complete(receiver, m)
	return why
}

func listSessions(s *steps) string {
	s.send(slices.Concat(into("one", "m"), into("two", "m"), into("two", "m"))...)
	stateful := s.accept("three")
	must(stateful.SetSessionState(s.ctx, []byte("state"), nil))
	must(stateful.Close(s.ctx))
	var all []string
	for pager := s.client.NewListSessionsForQueuePager(s.queue, nil); pager.More(); {
		all = append(all, got(pager.NextPage(s.ctx)).Sessions...)
	}
	slices.Sort(all)
	same(all, []string{"one", "three", "two"}, "sessions")
	return ""
}

var sessionScenarios = map[string]func(*steps) string{
	"session/accept-named":         acceptNamed,
	"session/accept-next":          acceptNext,
	"session/accept-next-time-out": acceptNextTimeOut,
	"session/order":                order,
	"session/state":                state,
	"session/renew":                renewSession,
	"session/locked-by-another":    lockedByAnother,
	"session/deferral":             sessionDeferral,
	"session/dead-letter":          sessionDeadLetter,
	"session/missing-id-refused":   missingIDRefused,
	"session/list":                 listSessions,
}
