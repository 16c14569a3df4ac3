// What the queue and session scenarios of azservicebus share: a client, and strict little steps.
package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// failed ends a scenario from within a step.
type failed struct{ err error }

func fail(format string, values ...any) { panic(failed{fmt.Errorf(format, values...)}) }

func must(err error) {
	if err != nil {
		panic(failed{err})
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}

func same(actual, expected any, what string) {
	if !reflect.DeepEqual(actual, expected) {
		fail("%s: expected %#v, got %#v", what, expected, actual)
	}
}

func pointer[T any](value T) *T { return &value }

// steps is one scenario at work. Each has a queue of its own, empty at the start.
type steps struct {
	client *sb.Client
	queue  string
	ctx    context.Context
}

// consumer is what Receiver and SessionReceiver have in common.
type consumer interface {
	ReceiveMessages(ctx context.Context, count int, options *sb.ReceiveMessagesOptions) ([]*sb.ReceivedMessage, error)
	PeekMessages(ctx context.Context, count int, options *sb.PeekMessagesOptions) ([]*sb.ReceivedMessage, error)
	CompleteMessage(ctx context.Context, message *sb.ReceivedMessage, options *sb.CompleteMessageOptions) error
}

// Nothing is retried by the SDK: what the broker answers first is what counts.
func connectQueues() *sb.Client {
	return got(sb.NewClientFromConnectionString(given.Brokers["queues"].Emulator,
		&sb.ClientOptions{RetryOptions: noRetry}))
}

// withQueue makes a scenario of a function that works on the scenario's queue.
func withQueue(name string, body func(s *steps) string) scenario {
	return func() (detail string, err error) {
		defer func() {
			if r := recover(); r != nil {
				f, ours := r.(failed)
				if !ours {
					panic(r)
				}
				err = f.err
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), scenarioLimit)
		defer cancel()
		s := &steps{client: connectQueues(), queue: given.Queues[name], ctx: ctx}
		defer closeSoon(s.client)
		return body(s), nil
	}
}

func text(body string) *sb.Message { return &sb.Message{Body: []byte(body)} }

func (s *steps) sender() *sb.Sender { return got(s.client.NewSender(s.queue, nil)) }

func (s *steps) send(messages ...*sb.Message) {
	sender := s.sender()
	for _, message := range messages {
		must(sender.SendMessage(s.ctx, message, nil))
	}
	must(sender.Close(s.ctx))
}

func (s *steps) receiver() *sb.Receiver { return got(s.client.NewReceiverForQueue(s.queue, nil)) }

func (s *steps) graves() *sb.Receiver {
	return got(s.client.NewReceiverForQueue(s.queue, &sb.ReceiverOptions{SubQueue: sb.SubQueueDeadLetter}))
}

// take receives exactly `count` messages, however many calls that needs.
func (s *steps) take(from consumer, count int) []*sb.ReceivedMessage {
	const limit = 10 * time.Second
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	var all []*sb.ReceivedMessage
	for len(all) < count {
		more, err := from.ReceiveMessages(ctx, count-len(all), nil)
		if err != nil {
			fail("%d of %d messages came: %w", len(all), count, err)
		}
		all = append(all, more...)
	}
	return all
}

func (s *steps) takeOne(from consumer) *sb.ReceivedMessage { return s.take(from, 1)[0] }

func (s *steps) nothing(from consumer, wait time.Duration) {
	ctx, cancel := context.WithTimeout(s.ctx, wait)
	defer cancel()
	messages, err := from.ReceiveMessages(ctx, 1, nil)
	if !errors.Is(err, context.DeadlineExceeded) || len(messages) > 0 {
		fail("expected nothing, got %v, %w", bodies(messages), err)
	}
}

func (s *steps) complete(from consumer, messages ...*sb.ReceivedMessage) {
	for _, message := range messages {
		must(from.CompleteMessage(s.ctx, message, nil))
	}
}

func (s *steps) sees(from consumer, count int, expected ...string) {
	seen := got(from.PeekMessages(s.ctx, count, &sb.PeekMessagesOptions{FromSequenceNumber: pointer(int64(1))}))
	same(bodies(seen), append([]string{}, expected...), "peek")
}

// gone says that nothing at all is in the queue, not even locked or deferred.
func (s *steps) gone() { s.sees(s.receiver(), 10) }

func bodies(messages []*sb.ReceivedMessage) []string {
	all := []string{}
	for _, message := range messages {
		all = append(all, string(message.Body))
	}
	return all
}

func expectCode(err error, code sb.Code) string {
	var own *sb.Error
	if !errors.As(err, &own) || own.Code != code {
		fail("expected the code %s, got %T: %v", code, err, err)
	}
	return err.Error()
}

func value(text *string) string {
	if text == nil {
		return "(nil)"
	}
	return *text
}
