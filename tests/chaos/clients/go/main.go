// azservicebus as a client of the chaos run: each role has a connection of its own.
//
// An answer that did not come is unknown, and the role connects again. Retries are off, but this SDK sends once more
// by itself after a detach, and settles up to three times more whatever it is told. So it sends only where duplicates
// are found, and every error counts as unknown.
//
// Commands come on standard input: `quiet` ends the senders, `stop` everything.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	answerTime  = 8 * time.Second
	receiveTime = time.Second
	closeTime   = 2 * time.Second
)

type roleSpec struct {
	Role         string  `json:"role"`
	To           string  `json:"to"`
	Rate         float64 `json:"rate"`
	Dedup        bool    `json:"dedup"`
	From         string  `json:"from"`
	Subscription string  `json:"subscription"`
	Dead         bool    `json:"dead"`
}

type spec struct {
	Name       string     `json:"name"`
	Log        string     `json:"log"`
	Seed       uint64     `json:"seed"`
	Connection string     `json:"connection"`
	Roles      []roleSpec `json:"roles"`
}

type fields map[string]any

// history is docs/formats/history.md, one line per event. A line is one write: others may append to the file too.
type history struct{ file *os.File }

func now() int64 { return time.Now().UnixMicro() }

func (h history) say(who, do string, more fields) {
	line := fields{"t": now(), "who": who, "do": do}
	for name, value := range more {
		line[name] = value
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = h.file.Write(append(text, '\n'))
	}
	if err != nil {
		fmt.Println("history:", err)
		os.Exit(1) // what was not written down cannot be judged
	}
}

type role struct {
	how      roleSpec
	history  history
	who      string
	random   *rand.Rand
	ended    *atomic.Bool
	troubles map[string]int
	number   int
	again    string // the message-id that was not accepted
}

func newRole(given spec, log history, number int, quiet, stopped *atomic.Bool) (*role, error) {
	r := &role{how: given.Roles[number], history: log, who: fmt.Sprintf("%s-%d", given.Name, number),
		ended: stopped, troubles: map[string]int{}}
	hash := fnv.New64a()
	hash.Write([]byte(r.who))
	r.random = rand.New(rand.NewPCG(given.Seed, hash.Sum64()))
	switch {
	case r.how.Role == "receive":
	case r.how.Role == "send" && r.how.Dedup:
		r.ended = quiet
	default:
		return nil, fmt.Errorf("%s: no such role here: %+v", r.who, r.how)
	}
	return r, nil
}

func (r *role) say(do string, what fields, more fields) {
	all := fields{}
	for _, some := range []fields{what, more} {
		for name, value := range some {
			all[name] = value
		}
	}
	r.history.say(r.who, do, all)
}

func (r *role) between(low, high int) int { return low + r.random.IntN(high-low+1) }

func (r *role) run(connection string) {
	for !r.ended.Load() {
		client, err := sb.NewClientFromConnectionString(connection, &sb.ClientOptions{
			RetryOptions: sb.RetryOptions{MaxRetries: -1}})
		if err == nil {
			if r.how.Role == "send" {
				err = r.send(client)
			} else {
				err = r.receive(client)
			}
			ctx, cancel := context.WithTimeout(context.Background(), closeTime)
			_ = client.Close(ctx) // it may be gone already
			cancel()
		}
		if err != nil {
			r.troubles[kindOf(err)]++
			time.Sleep(time.Duration(r.between(100, 400)) * time.Millisecond)
		}
	}
}

func kindOf(err error) string {
	var known *sb.Error
	if errors.As(err, &known) {
		return string(known.Code)
	}
	return fmt.Sprintf("%T", err)
}

func (r *role) send(client *sb.Client) error {
	sender, err := client.NewSender(r.how.To, nil)
	if err != nil {
		return err
	}
	for !r.ended.Load() {
		if err := r.sendOne(sender); err != nil {
			return err
		}
		time.Sleep(time.Duration(r.random.Float64() * 2 / r.how.Rate * float64(time.Second)))
	}
	return nil
}

// What was not accepted is sent again under the same message-id, as a message of its own.
func (r *role) sendOne(sender *sb.Sender) error {
	mid := r.again
	if mid == "" {
		mid = fmt.Sprintf("%s.m%d", r.who, r.number)
	}
	r.number++
	id := fmt.Sprintf("%s.%d", r.who, r.number)
	size := r.between(0, 200)
	if r.random.Float64() >= 0.95 {
		size = r.between(1000, 150000)
	}
	r.say("send", fields{"id": id, "to": r.how.To, "mid": mid}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	err := sender.SendMessage(ctx, &sb.Message{Body: []byte(id + " " + strings.Repeat("x", size)), MessageID: &mid}, nil)
	result := "accepted"
	r.again = ""
	if err != nil {
		result, r.again = "unknown", mid
	}
	r.say("sent", fields{"id": id, "result": result}, nil)
	return err
}

func (r *role) place() string {
	place := r.how.From
	if r.how.Subscription != "" {
		place += "/Subscriptions/" + r.how.Subscription
	}
	if r.how.Dead {
		place += "/$DeadLetterQueue"
	}
	return place
}

func (r *role) receive(client *sb.Client) error {
	options := &sb.ReceiverOptions{}
	if r.how.Dead {
		options.SubQueue = sb.SubQueueDeadLetter
	}
	var receiver *sb.Receiver
	var err error
	if r.how.Subscription != "" {
		receiver, err = client.NewReceiverForSubscription(r.how.From, r.how.Subscription, options)
	} else {
		receiver, err = client.NewReceiverForQueue(r.how.From, options)
	}
	if err != nil {
		return err
	}
	for !r.ended.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), receiveTime)
		messages, err := receiver.ReceiveMessages(ctx, r.between(1, 8), nil)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		// All are told before anything is done with the first: what was delivered before a crash is told soon.
		told := make([]fields, len(messages))
		for n, message := range messages {
			told[n] = r.told(message)
		}
		for n, message := range messages {
			if told[n] == nil {
				continue
			}
			if err := r.deal(receiver, message, told[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Nothing when its lock was over before it came out of the SDK: nobody counts on it then.
func (r *role) told(message *sb.ReceivedMessage) fields {
	if message.LockedUntil.UnixMicro() <= now() {
		return nil
	}
	id, _, _ := strings.Cut(string(message.Body), " ")
	what := fields{"id": id, "from": r.place(), "seq": *message.SequenceNumber}
	more := fields{"count": message.DeliveryCount, "until": message.LockedUntil.UnixMicro()}
	if message.DeadLetterReason != nil {
		more["dead"] = *message.DeadLetterReason
	}
	r.say("got", what, more)
	return what
}

func (r *role) deal(receiver *sb.Receiver, message *sb.ReceivedMessage, what fields) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	kind := r.random.Float64()
	if kind < 0.04 {
		if err := receiver.RenewMessageLock(ctx, message, nil); err != nil {
			return err
		}
		r.say("renewed", what, fields{"until": message.LockedUntil.UnixMicro()})
	}
	how, settle := "complete", func() error { return receiver.CompleteMessage(ctx, message, nil) }
	switch {
	case kind > 0.97:
		return nil // left alone, until its lock ends
	case kind > 0.92 && !r.how.Dead:
		how, settle = "abandon", func() error { return receiver.AbandonMessage(ctx, message, nil) }
	case kind > 0.88 && !r.how.Dead:
		reason, description := "chaos", "by chance"
		how, settle = "dead-letter", func() error {
			return receiver.DeadLetterMessage(ctx, message, &sb.DeadLetterOptions{Reason: &reason,
				ErrorDescription: &description})
		}
	}
	r.say("settle", what, fields{"how": how})
	err := settle()
	result := "accepted"
	if err != nil {
		result = "unknown"
	}
	r.say("settled", what, fields{"how": how, "result": result})
	return err
}

func run(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var given spec
	if err := json.Unmarshal(text, &given); err != nil {
		return err
	}
	file, err := os.OpenFile(given.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	var quiet, stopped atomic.Bool
	var roles []*role
	for number := range given.Roles {
		one, err := newRole(given, history{file}, number, &quiet, &stopped)
		if err != nil {
			return err
		}
		roles = append(roles, one)
	}
	go func() {
		commands := bufio.NewScanner(os.Stdin)
		for commands.Scan() {
			quiet.Store(true)
			if strings.TrimSpace(commands.Text()) != "quiet" {
				break
			}
		}
		quiet.Store(true)
		stopped.Store(true)
	}()
	var all sync.WaitGroup
	for _, one := range roles {
		all.Go(func() { one.run(given.Connection) })
	}
	all.Wait()
	for _, one := range roles {
		fmt.Println(one.who, one.how.Role, one.troubles)
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Println("usage: client SPEC")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
