// What azservicebus/admin does: every method of its client, against entities of its own. Each is called in this file.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// desk is one scenario at work: the administration client, and one for messages.
type desk struct {
	*admin.Client
	messages *sb.Client
	ctx      context.Context
}

func adminName(name string) string { return "go-admin-" + name }

// adminOptions trusts the broker and retries nothing.
func adminOptions(b broker) *admin.ClientOptions {
	transport := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(b.CA)}}
	return &admin.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: transport, Retry: policy.RetryOptions{MaxRetries: -1}}}
}

func connectAdmin(connection string) *admin.Client {
	return got(admin.NewClientFromConnectionString(connection, adminOptions(given.Brokers["admin"])))
}

func guarded(body func(ctx context.Context) string) scenario {
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
		return body(ctx), nil
	}
}

func withAdmin(body func(d *desk) string) scenario {
	return guarded(func(ctx context.Context) string {
		messages := got(sb.NewClientFromConnectionString(given.Brokers["admin"].Emulator,
			&sb.ClientOptions{RetryOptions: noRetry}))
		defer closeSoon(messages)
		return body(&desk{connectAdmin(given.Brokers["admin"].TLS), messages, ctx})
	})
}

// adminRefused checks the status of an answer and the sub-code in its text.
func adminRefused(err error, status int, subCode string) {
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		fail("expected status %d, got %v", status, err)
	}
	if response.StatusCode != status || !strings.Contains(err.Error(), subCode) {
		fail("expected %d with %s, got %d: %v", status, subCode, response.StatusCode, err)
	}
}

func allOf[T any, Item any](ctx context.Context, pager *runtime.Pager[T], items func(T) []Item) []Item {
	var all []Item
	for pager.More() {
		all = append(all, items(got(pager.NextPage(ctx)))...)
	}
	return all
}

func (d *desk) takes(receiver *sb.Receiver, count int) []*sb.ReceivedMessage {
	var all []*sb.ReceivedMessage
	for len(all) < count {
		all = append(all, got(receiver.ReceiveMessages(d.ctx, count-len(all), nil))...)
	}
	return all
}

var adminQueueShape = admin.QueueProperties{
	LockDuration: pointer("PT30S"), MaxSizeInMegabytes: pointer[int32](2048), RequiresDuplicateDetection: pointer(true),
	RequiresSession: pointer(true), DefaultMessageTimeToLive: pointer("P3D"),
	DeadLetteringOnMessageExpiration: pointer(true), DuplicateDetectionHistoryTimeWindow: pointer("PT5M"),
	MaxDeliveryCount: pointer[int32](7), EnableBatchedOperations: pointer(false), AutoDeleteOnIdle: pointer("P10D"),
	UserMetadata: pointer("the <first> & \"best\""), MaxMessageSizeInKilobytes: pointer[int64](2048),
	Status: pointer(admin.EntityStatusActive), EnablePartitioning: pointer(false),
}
var adminTopicShape = admin.TopicProperties{
	DefaultMessageTimeToLive: pointer("P2D"), MaxSizeInMegabytes: pointer[int32](3072),
	RequiresDuplicateDetection: pointer(true), DuplicateDetectionHistoryTimeWindow: pointer("PT2M"),
	EnableBatchedOperations: pointer(false), UserMetadata: pointer("topic"), AutoDeleteOnIdle: pointer("P5D"),
	SupportOrdering: pointer(true), Status: pointer(admin.EntityStatusActive), EnablePartitioning: pointer(false),
	MaxMessageSizeInKilobytes: pointer[int64](1024),
}
var adminSubscriptionShape = admin.SubscriptionProperties{
	LockDuration: pointer("PT20S"), RequiresSession: pointer(true), DefaultMessageTimeToLive: pointer("P4D"),
	DeadLetteringOnMessageExpiration:                pointer(true),
	EnableDeadLetteringOnFilterEvaluationExceptions: pointer(false), MaxDeliveryCount: pointer[int32](5),
	EnableBatchedOperations: pointer(false), UserMetadata: pointer("sub"), AutoDeleteOnIdle: pointer("P6D"),
	Status: pointer(admin.EntityStatusActive),
}

func adminNamespace(d *desk) string {
	found := got(d.GetNamespaceProperties(d.ctx, nil))
	same(found.Name, "sbemulatorns", "name")
	same(found.SKU, "Premium", "sku")
	same(found.CreatedTime.Year() > 2020, true, "created")
	return ""
}

func adminQueue(d *desk) string {
	name := adminName("queue")
	made := got(d.CreateQueue(d.ctx, name, &admin.CreateQueueOptions{Properties: &adminQueueShape}))
	same(made.QueueProperties, adminQueueShape, "created")
	same(got(d.GetQueue(d.ctx, name, nil)).QueueProperties, adminQueueShape, "found")
	_, err := d.CreateQueue(d.ctx, name, nil)
	adminRefused(err, 409, "SubCode=40900")
	must(second(d.DeleteQueue(d.ctx, name, nil)))
	same(got(d.GetQueue(d.ctx, name, nil)) == nil, true, "gone")
	return ""
}

func second[T any](_ T, err error) error { return err }

func adminQueueUpdate(d *desk) string {
	name := adminName("queue-update")
	made := got(d.CreateQueue(d.ctx, name, nil)).QueueProperties
	made.LockDuration, made.MaxDeliveryCount, made.UserMetadata = pointer("PT45S"), pointer[int32](3), pointer("after")
	same(got(d.UpdateQueue(d.ctx, name, made, nil)).QueueProperties, made, "updated")
	same(got(d.GetQueue(d.ctx, name, nil)).QueueProperties, made, "found")
	times := got(d.GetQueueRuntimeProperties(d.ctx, name, nil))
	same(times.UpdatedAt.After(times.CreatedAt), true, "UpdatedAt moved")
	wrong := made
	wrong.RequiresSession = pointer(true)
	adminRefused(second(d.UpdateQueue(d.ctx, name, wrong, nil)), 400, "SubCode=40000")
	must(second(d.DeleteQueue(d.ctx, name, nil)))
	adminRefused(second(d.UpdateQueue(d.ctx, name, made, nil)), 404, "SubCode=40400")
	return ""
}

func adminTopic(d *desk) string {
	name := adminName("topic")
	same(got(d.CreateTopic(d.ctx, name, &admin.CreateTopicOptions{Properties: &adminTopicShape})).TopicProperties,
		adminTopicShape, "created")
	found := got(d.GetTopic(d.ctx, name, nil)).TopicProperties
	same(found, adminTopicShape, "found")
	found.UserMetadata = pointer("changed")
	same(got(d.UpdateTopic(d.ctx, name, found, nil)).TopicProperties, found, "updated")
	must(second(d.CreateSubscription(d.ctx, name, "one", nil)))
	same(got(d.GetTopicRuntimeProperties(d.ctx, name, nil)).SubscriptionCount, int32(1), "subscriptions")
	must(second(d.DeleteTopic(d.ctx, name, nil)))
	same(got(d.GetTopic(d.ctx, name, nil)) == nil, true, "gone")
	same(got(d.GetSubscription(d.ctx, name, "one", nil)) == nil, true, "its subscription")
	return ""
}

func adminSubscription(d *desk) string {
	on := adminName("subscription")
	must(second(d.CreateTopic(d.ctx, on, nil)))
	made := got(d.CreateSubscription(d.ctx, on, "s", &admin.CreateSubscriptionOptions{Properties: &adminSubscriptionShape}))
	same(made.SubscriptionProperties, adminSubscriptionShape, "created")
	found := got(d.GetSubscription(d.ctx, on, "s", nil)).SubscriptionProperties
	same(found, adminSubscriptionShape, "found")
	found.MaxDeliveryCount = pointer[int32](9)
	same(got(d.UpdateSubscription(d.ctx, on, "s", found, nil)).SubscriptionProperties, found, "updated")
	must(second(d.CreateSubscription(d.ctx, on, "a", &admin.CreateSubscriptionOptions{
		Properties: &admin.SubscriptionProperties{DefaultRule: &admin.RuleProperties{Name: "first",
			Filter: &admin.SQLFilter{Expression: "color = 'red'"}}}})))
	first := got(d.GetRule(d.ctx, on, "a", "first", nil))
	same(first.Filter, admin.RuleFilter(&admin.SQLFilter{Expression: "color = 'red'"}), "default rule")
	listed := allOf(d.ctx, d.NewListSubscriptionsPager(on, nil),
		func(p admin.ListSubscriptionsResponse) []admin.SubscriptionPropertiesItem { return p.Subscriptions })
	same(len(listed), 2, "list")
	same([]string{listed[0].SubscriptionName, listed[1].SubscriptionName}, []string{"a", "s"}, "list")
	running := allOf(d.ctx, d.NewListSubscriptionsRuntimePropertiesPager(on, nil),
		func(p admin.ListSubscriptionsRuntimePropertiesResponse) []admin.SubscriptionRuntimePropertiesItem {
			return p.SubscriptionRuntimeProperties
		})
	same(len(running), 2, "runtime list")
	same(got(d.GetSubscriptionRuntimeProperties(d.ctx, on, "s", nil)).TotalMessageCount, int64(0), "count")
	adminRefused(second(d.CreateSubscription(d.ctx, on, "s", nil)), 409, "SubCode=40900")
	must(second(d.DeleteSubscription(d.ctx, on, "a", nil)))
	adminRefused(second(d.CreateSubscription(d.ctx, adminName("no-such"), "s", nil)), 404, "SubCode=40400")
	must(second(d.DeleteTopic(d.ctx, on, nil)))
	return ""
}

func adminRules(d *desk) string {
	on := adminName("rules")
	must(second(d.CreateTopic(d.ctx, on, nil)))
	must(second(d.CreateSubscription(d.ctx, on, "s", nil)))
	same(got(d.GetRule(d.ctx, on, "s", "$Default", nil)).Filter, admin.RuleFilter(&admin.TrueFilter{}), "default")
	sql := &admin.SQLFilter{Expression: "price > @limit", Parameters: map[string]any{"@limit": int64(10)}}
	made := got(d.CreateRule(d.ctx, on, "s", &admin.CreateRuleOptions{Name: pointer("sql"), Filter: sql,
		Action: &admin.SQLAction{Expression: "SET seen = 1"}}))
	same(made.Filter.(*admin.SQLFilter).Expression, sql.Expression, "expression")
	same(made.Action.(*admin.SQLAction).Expression, "SET seen = 1", "action")
	moment := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	correlation := &admin.CorrelationFilter{ContentType: pointer("ct"), CorrelationID: pointer("c"), MessageID: pointer("m"),
		ReplyTo: pointer("r"), ReplyToSessionID: pointer("rs"), SessionID: pointer("s"), Subject: pointer("l"), To: pointer("t"),
		ApplicationProperties: map[string]any{"f": 1.5, "s": "text", "b": true, "d": moment}}
	must(second(d.CreateRule(d.ctx, on, "s", &admin.CreateRuleOptions{Name: pointer("correlation"), Filter: correlation})))
	same(got(d.GetRule(d.ctx, on, "s", "correlation", nil)).Filter, admin.RuleFilter(correlation), "correlation")
	must(second(d.CreateRule(d.ctx, on, "s", &admin.CreateRuleOptions{Name: pointer("never"), Filter: &admin.FalseFilter{}})))
	names := func() []string {
		var all []string
		for _, rule := range allOf(d.ctx, d.NewListRulesPager(on, "s", nil),
			func(p admin.ListRulesResponse) []admin.RuleProperties { return p.Rules }) {
			all = append(all, rule.Name)
		}
		return all
	}
	same(names(), []string{"$Default", "correlation", "never", "sql"}, "list")
	changed := got(d.UpdateRule(d.ctx, on, "s", admin.RuleProperties{Name: "sql",
		Filter: &admin.SQLFilter{Expression: "price < 5"}}))
	same(changed.Filter, admin.RuleFilter(&admin.SQLFilter{Expression: "price < 5"}), "updated")
	same(changed.Action == nil, true, "no action any more")
	must(second(d.DeleteRule(d.ctx, on, "s", "$Default", nil)))
	// Without a name it is the default rule.
	must(second(d.CreateRule(d.ctx, on, "s", &admin.CreateRuleOptions{Filter: &admin.FalseFilter{}})))
	same(slices.Contains(names(), "$Default"), true, "a rule without a name")
	adminRefused(second(d.CreateRule(d.ctx, on, "s", &admin.CreateRuleOptions{Name: pointer("SQL"), Filter: sql})), 409, "40900")
	adminRefused(second(d.CreateRule(d.ctx, on, "s", &admin.CreateRuleOptions{Name: pointer("bad"),
		Filter: &admin.SQLFilter{Expression: "price >"}})), 400, "40000")
	sender := got(d.messages.NewSender(on, nil))
	must(sender.SendMessage(d.ctx, with("dear", properties{"price": 99}), nil))
	must(sender.SendMessage(d.ctx, with("cheap", properties{"price": 1}), nil))
	receiver := got(d.messages.NewReceiverForSubscription(on, "s", nil))
	same(string(d.takes(receiver, 1)[0].Body), "cheap", "what the updated rule lets through")
	must(second(d.DeleteTopic(d.ctx, on, nil)))
	return ""
}

func adminList(d *desk) string {
	var wanted []string
	for i := range 205 {
		wanted = append(wanted, fmt.Sprintf("%s-%03d", adminName("list"), i))
		must(second(d.CreateQueue(d.ctx, wanted[i], nil)))
	}
	var found, running []string
	for _, one := range allOf(d.ctx, d.NewListQueuesPager(nil),
		func(p admin.ListQueuesResponse) []admin.QueueItem { return p.Queues }) {
		if strings.HasPrefix(one.QueueName, adminName("list-")) {
			found = append(found, one.QueueName)
		}
	}
	same(found, wanted, "queues")
	for _, one := range allOf(d.ctx, d.NewListQueuesRuntimePropertiesPager(&admin.ListQueuesRuntimePropertiesOptions{MaxPageSize: 50}),
		func(p admin.ListQueuesRuntimePropertiesResponse) []admin.QueueRuntimePropertiesItem {
			return p.QueueRuntimeProperties
		}) {
		if strings.HasPrefix(one.QueueName, adminName("list-")) {
			running = append(running, one.QueueName)
		}
	}
	same(running, wanted, "runtime")
	must(second(d.CreateTopic(d.ctx, adminName("topics"), nil)))
	same(slices.ContainsFunc(allOf(d.ctx, d.NewListTopicsPager(nil),
		func(p admin.ListTopicsResponse) []admin.TopicItem { return p.Topics }),
		func(one admin.TopicItem) bool { return one.TopicName == adminName("topics") }), true, "topics")
	same(len(allOf(d.ctx, d.NewListTopicsRuntimePropertiesPager(nil),
		func(p admin.ListTopicsRuntimePropertiesResponse) []admin.TopicRuntimePropertiesItem {
			return p.TopicRuntimeProperties
		})) > 0, true, "topics, runtime")
	for _, name := range wanted {
		must(second(d.DeleteQueue(d.ctx, name, nil)))
	}
	must(second(d.DeleteTopic(d.ctx, adminName("topics"), nil)))
	return ""
}

func adminRuntime(d *desk) string {
	on := adminName("runtime")
	must(second(d.CreateQueue(d.ctx, on, nil)))
	sender := got(d.messages.NewSender(on, nil))
	for range 5 {
		must(sender.SendMessage(d.ctx, text(strings.Repeat("x", 100)), nil))
	}
	got(sender.ScheduleMessages(d.ctx, []*sb.Message{text("later")}, time.Now().Add(time.Hour), nil))
	receiver := got(d.messages.NewReceiverForQueue(on, nil))
	taken := d.takes(receiver, 2)
	must(receiver.DeadLetterMessage(d.ctx, taken[0], nil))
	must(receiver.DeferMessage(d.ctx, taken[1], nil))
	found := got(d.GetQueueRuntimeProperties(d.ctx, on, nil))
	same([]int32{found.ActiveMessageCount, found.DeadLetterMessageCount, found.ScheduledMessageCount,
		found.TransferMessageCount, found.TransferDeadLetterMessageCount}, []int32{4, 1, 1, 0, 0}, "counts")
	same(found.TotalMessageCount, int64(6), "total")
	same(found.SizeInBytes > 500, true, "size")
	same(time.Since(found.AccessedAt).Abs() < time.Minute, true, "accessed")
	must(second(d.DeleteQueue(d.ctx, on, nil)))
	return ""
}

func adminPartitioned(d *desk) string {
	on := adminName("partitioned")
	made := got(d.CreateQueue(d.ctx, on, &admin.CreateQueueOptions{
		Properties: &admin.QueueProperties{EnablePartitioning: pointer(true)}})).QueueProperties
	same(*made.MaxSizeInMegabytes, int32(16384), "size of all partitions")
	made.MaxDeliveryCount = pointer[int32](4)
	same(got(d.UpdateQueue(d.ctx, on, made, nil)).QueueProperties, made, "updated")
	sender := got(d.messages.NewSender(on, nil))
	for range 20 {
		must(sender.SendMessage(d.ctx, text("x"), nil))
	}
	same(got(d.GetQueueRuntimeProperties(d.ctx, on, nil)).ActiveMessageCount, int32(20), "sum of the partitions")
	must(second(d.DeleteQueue(d.ctx, on, nil)))
	return ""
}

func adminUsed(d *desk) string {
	on, topic := adminName("used"), adminName("used-topic")
	must(second(d.CreateQueue(d.ctx, on, nil)))
	must(got(d.messages.NewSender(on, nil)).SendMessage(d.ctx, text("hello"), nil))
	receiver := got(d.messages.NewReceiverForQueue(on, nil))
	message := d.takes(receiver, 1)[0]
	same(string(message.Body), "hello", "body")
	must(receiver.CompleteMessage(d.ctx, message, nil))
	must(second(d.CreateTopic(d.ctx, topic, nil)))
	must(second(d.CreateSubscription(d.ctx, topic, "s", nil)))
	must(got(d.messages.NewSender(topic, nil)).SendMessage(d.ctx, text("published"), nil))
	same(string(d.takes(got(d.messages.NewReceiverForSubscription(topic, "s", nil)), 1)[0].Body), "published", "copy")
	must(second(d.DeleteQueue(d.ctx, on, nil)))
	must(second(d.DeleteTopic(d.ctx, topic, nil)))
	return ""
}

func adminDeletedLink(d *desk) string {
	on := adminName("deleted")
	must(second(d.CreateQueue(d.ctx, on, nil)))
	sender := got(d.messages.NewSender(on, nil))
	must(sender.SendMessage(d.ctx, text("x"), nil))
	receiver := got(d.messages.NewReceiverForQueue(on, nil))
	d.takes(receiver, 1)
	must(second(d.DeleteQueue(d.ctx, on, nil)))
	_, err := receiver.ReceiveMessages(d.ctx, 1, nil)
	if err == nil || !strings.Contains(err.Error(), "amqp:not-found") {
		fail("expected not found, got %v", err)
	}
	err = sender.SendMessage(d.ctx, text("y"), nil)
	if err == nil || !strings.Contains(err.Error(), "could not be found") {
		fail("expected that it is not found, got %v", err)
	}
	return err.Error()
}

func adminDisabled(d *desk) string {
	on := adminName("disabled")
	made := got(d.CreateQueue(d.ctx, on, nil)).QueueProperties
	sender := got(d.messages.NewSender(on, nil))
	must(sender.SendMessage(d.ctx, text("x"), nil))
	made.Status = pointer(admin.EntityStatusSendDisabled)
	same(*got(d.UpdateQueue(d.ctx, on, made, nil)).Status, admin.EntityStatusSendDisabled, "status")
	if err := sender.SendMessage(d.ctx, text("y"), nil); err == nil {
		fail("a message was taken")
	}
	made.Status = pointer(admin.EntityStatusActive)
	must(second(d.UpdateQueue(d.ctx, on, made, nil)))
	must(got(d.messages.NewSender(on, nil)).SendMessage(d.ctx, text("z"), nil))
	same(len(d.takes(got(d.messages.NewReceiverForQueue(on, nil)), 2)), 2, "what came")
	must(second(d.DeleteQueue(d.ctx, on, nil)))
	return ""
}

func adminWrongKey(d *desk) string {
	broker := given.Brokers["admin"]
	_, err := connectAdmin(broker.AdminWrongKey).GetQueue(d.ctx, "x", nil)
	adminRefused(err, 401, "40103")
	_, err = connectAdmin(broker.AdminSendOnly).CreateQueue(d.ctx, adminName("never"), nil)
	adminRefused(err, 401, "40100")
	same(got(connectAdmin(broker.AdminSendOnly).GetNamespaceProperties(d.ctx, nil)).Name, "sbemulatorns", "any right")
	return ""
}

func adminMissing(d *desk) string {
	nothing := adminName("nothing")
	same(got(d.GetQueue(d.ctx, nothing, nil)) == nil, true, "queue")
	same(got(d.GetTopic(d.ctx, nothing, nil)) == nil, true, "topic")
	same(got(d.GetQueueRuntimeProperties(d.ctx, nothing, nil)) == nil, true, "runtime")
	same(got(d.GetTopicRuntimeProperties(d.ctx, nothing, nil)) == nil, true, "topic runtime")
	same(got(d.GetSubscription(d.ctx, nothing, "s", nil)) == nil, true, "subscription")
	same(got(d.GetRule(d.ctx, nothing, "s", "r", nil)) == nil, true, "rule")
	adminRefused(second(d.DeleteQueue(d.ctx, nothing, nil)), 404, "40400")
	adminRefused(second(d.DeleteTopic(d.ctx, nothing, nil)), 404, "40400")
	adminRefused(second(d.DeleteSubscription(d.ctx, nothing, "s", nil)), 404, "40400")
	adminRefused(second(d.DeleteRule(d.ctx, nothing, "s", "r", nil)), 404, "40400")
	adminRefused(second(d.CreateQueue(d.ctx, nothing, &admin.CreateQueueOptions{
		Properties: &admin.QueueProperties{MaxSizeInMegabytes: pointer[int32](77)}})), 400, "40000")
	return ""
}

// An exchange is made by a document; to this client it is a topic.
func adminExchange(d *desk) string {
	on, broker := adminName("exchange"), given.Brokers["admin"]
	document := func(method, body string) (int, map[string]any) {
		request := got(http.NewRequestWithContext(d.ctx, method, fmt.Sprintf("http://%s:%d/%s", broker.Host, broker.Port, on),
			strings.NewReader(body)))
		request.Header = http.Header{"Authorization": {broker.Tokens["namespace"]}, "Content-Type": {"application/json"},
			"Accept": {"application/json"}}
		answer := got(http.DefaultClient.Do(request))
		defer answer.Body.Close()
		var found map[string]any
		must(json.NewDecoder(answer.Body).Decode(&found))
		return answer.StatusCode, found
	}
	status, _ := document("PUT", `{"Type": "Fanout", "Subscriptions": [{"Name": "s", "PrefetchCount": 9}]}`)
	same(status, 201, "made")
	same(slices.ContainsFunc(allOf(d.ctx, d.NewListTopicsPager(nil),
		func(p admin.ListTopicsResponse) []admin.TopicItem { return p.Topics }),
		func(one admin.TopicItem) bool { return one.TopicName == on }), true, "listed")
	topic := got(d.GetTopic(d.ctx, on, nil)).TopicProperties
	same(len(allOf(d.ctx, d.NewListRulesPager(on, "s", nil),
		func(p admin.ListRulesResponse) []admin.RuleProperties { return p.Rules })), 0, "rules")
	adminRefused(second(d.CreateRule(d.ctx, on, "s", &admin.CreateRuleOptions{Name: pointer("r")})), 400, "40000")
	adminRefused(second(d.CreateTopic(d.ctx, on, nil)), 409, "40900")
	topic.DefaultMessageTimeToLive = pointer("P1D")
	must(second(d.UpdateTopic(d.ctx, on, topic, nil)))
	subscription := got(d.GetSubscription(d.ctx, on, "s", nil)).SubscriptionProperties
	subscription.MaxDeliveryCount = pointer[int32](4)
	must(second(d.UpdateSubscription(d.ctx, on, "s", subscription, nil)))
	must(second(d.CreateSubscription(d.ctx, on, "other", nil)))
	_, now := document("GET", "")
	same(now["Type"], any("Fanout"), "type")
	same(now["Broker"].(map[string]any)["DefaultMessageTimeToLive"], any("P1D"), "a shared property")
	for _, one := range now["Subscriptions"].([]any) {
		if own := one.(map[string]any); own["Name"] == "s" {
			same(own["PrefetchCount"], any(9.0), "prefetch")
			same(own["Broker"].(map[string]any)["MaxDeliveryCount"], any(4.0), "deliveries")
		}
	}
	must(got(d.messages.NewSender(on, nil)).SendMessage(d.ctx, text("to all"), nil))
	same(string(d.takes(got(d.messages.NewReceiverForSubscription(on, "other", nil)), 1)[0].Body), "to all", "routed")
	must(second(d.DeleteTopic(d.ctx, on, nil)))
	status, _ = document("GET", "")
	same(status, 404, "gone")
	return ""
}

//go:embed admin.go
var adminSource string

// Every public method is used by one of these scenarios.
func adminMethods(d *desk) string {
	called := map[string]bool{}
	ast.Inspect(got(parser.ParseFile(token.NewFileSet(), "admin.go", adminSource, 0)), func(node ast.Node) bool {
		if call, is := node.(*ast.CallExpr); is {
			if method, is := call.Fun.(*ast.SelectorExpr); is {
				called[method.Sel.Name] = true
			}
		}
		return true
	})
	var unused []string
	client := reflect.TypeFor[*admin.Client]()
	for i := range client.NumMethod() {
		if name := client.Method(i).Name; !called[name] {
			unused = append(unused, name)
		}
	}
	same(client.NumMethod() > 20, true, "methods found")
	same(strings.Join(unused, " "), "", "methods that no scenario calls")
	return fmt.Sprintf("%d methods", client.NumMethod())
}

func adminRestart(d *desk) string {
	on := adminName("restart")
	must(second(d.CreateQueue(d.ctx, on, &admin.CreateQueueOptions{Properties: &adminQueueShape})))
	must(second(d.CreateTopic(d.ctx, on+"-t", &admin.CreateTopicOptions{Properties: &adminTopicShape})))
	must(second(d.CreateSubscription(d.ctx, on+"-t", "s",
		&admin.CreateSubscriptionOptions{Properties: &adminSubscriptionShape})))
	ask("stop", "admin")
	ask("start", "admin")
	again := connectAdmin(given.Brokers["admin"].TLS)
	same(got(again.GetQueue(d.ctx, on, nil)).QueueProperties, adminQueueShape, "queue")
	same(got(again.GetTopic(d.ctx, on+"-t", nil)).TopicProperties, adminTopicShape, "topic")
	same(got(again.GetSubscription(d.ctx, on+"-t", "s", nil)).SubscriptionProperties, adminSubscriptionShape, "subscription")
	must(second(again.DeleteQueue(d.ctx, on, nil)))
	must(second(again.DeleteTopic(d.ctx, on+"-t", nil)))
	return ""
}

var adminScenarios = map[string]func(*desk) string{
	"admin/namespace": adminNamespace, "admin/queue": adminQueue, "admin/queue-update": adminQueueUpdate,
	"admin/topic": adminTopic, "admin/subscription": adminSubscription, "admin/rules": adminRules, "admin/list": adminList,
	"admin/runtime": adminRuntime, "admin/partitioned": adminPartitioned, "admin/forward": adminForward,
	"admin/used": adminUsed, "admin/deleted-link": adminDeletedLink, "admin/disabled": adminDisabled,
	"admin/wrong-key": adminWrongKey, "admin/missing": adminMissing, "admin/exchange": adminExchange,
	"admin/methods": adminMethods, "admin-restart/kept": adminRestart,
	"admin/access-rules": adminAccessRules, "admin/key-rotation": adminKeyRotation,
	"admin/forward-subscription": adminForwardSubscription, "admin/forward-rights": adminForwardRights,
	"admin/counts": adminCounts,
}
