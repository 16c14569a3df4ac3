// Counts, sizes and times that azservicebus/admin shows, compared with what is really there.
package main

import (
	"context"
	"strings"
	"time"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

func recent(what string, moments ...time.Time) {
	for _, moment := range moments {
		same(time.Since(moment).Abs() < 2*time.Minute, true, what+" "+moment.String())
	}
}

func countsOf(found admin.SubscriptionRuntimeProperties) []int64 {
	return []int64{int64(found.ActiveMessageCount), int64(found.DeadLetterMessageCount), int64(found.TransferMessageCount),
		int64(found.TransferDeadLetterMessageCount), found.TotalMessageCount}
}

func adminCounts(d *desk) string {
	on := adminName("counts")
	must(second(d.CreateTopic(d.ctx, on, nil)))
	must(second(d.CreateSubscription(d.ctx, on, "a", nil)))
	must(second(d.CreateSubscription(d.ctx, on, "b", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
		DefaultRule: &admin.RuleProperties{Name: "r", Filter: &admin.SQLFilter{Expression: "n = 1"}}}})))
	sender := got(d.messages.NewSender(on, nil))
	for n := range 4 {
		must(sender.SendMessage(d.ctx, with(strings.Repeat("x", 1000), properties{"n": n}), nil))
	}
	got(sender.ScheduleMessages(d.ctx, []*sb.Message{text("later"), text("later")}, time.Now().Add(time.Hour), nil))
	receiver := got(d.messages.NewReceiverForSubscription(on, "a", nil))
	taken := d.takes(receiver, 2)
	must(receiver.DeadLetterMessage(d.ctx, taken[0], nil))
	must(receiver.DeferMessage(d.ctx, taken[1], nil))

	topic := got(d.GetTopicRuntimeProperties(d.ctx, on, nil)).TopicRuntimeProperties
	same([]int32{topic.SubscriptionCount, topic.ScheduledMessageCount, topic.SQLFilterCount, topic.CorrelationFilterCount},
		[]int32{2, 2, 2, 0}, "of the topic")
	same(topic.SizeInBytes >= 4000 && topic.SizeInBytes < 8000, true, "size")
	recent("topic", topic.CreatedAt, topic.AccessedAt)
	listed := 0
	for _, one := range allOf(d.ctx, d.NewListTopicsRuntimePropertiesPager(nil),
		func(p admin.ListTopicsRuntimePropertiesResponse) []admin.TopicRuntimePropertiesItem {
			return p.TopicRuntimeProperties
		}) {
		if one.TopicName == on {
			same(one.TopicRuntimeProperties, topic, "listed")
			listed++
		}
	}
	same(listed, 1, "times it is listed")
	// A deferred message is an active one.
	wanted := map[string][]int64{"a": {3, 1, 0, 0, 4}, "b": {1, 0, 0, 0, 1}}
	for name, expected := range wanted {
		found := got(d.GetSubscriptionRuntimeProperties(d.ctx, on, name, nil)).SubscriptionRuntimeProperties
		same(countsOf(found), expected, name)
		recent(name, found.CreatedAt)
	}
	recent("accessed", got(d.GetSubscriptionRuntimeProperties(d.ctx, on, "a", nil)).AccessedAt)
	all := allOf(d.ctx, d.NewListSubscriptionsRuntimePropertiesPager(on, nil),
		func(p admin.ListSubscriptionsRuntimePropertiesResponse) []admin.SubscriptionRuntimePropertiesItem {
			return p.SubscriptionRuntimeProperties
		})
	same(len(all), 2, "listed")
	for _, one := range all {
		same(countsOf(one.SubscriptionRuntimeProperties), wanted[one.SubscriptionName], "listed "+one.SubscriptionName)
	}
	must(second(d.DeleteTopic(d.ctx, on, nil)))
	return ""
}

// What the raw client left there before anybody came; see raw/counted.py.
func adminTransferCounts(ctx context.Context) string {
	b := given.Brokers["counts"]
	client := got(admin.NewClientFromConnectionString(b.TLS, adminOptions(b)))
	check := func(found admin.QueueRuntimeProperties, what string) {
		counts := []int32{found.ActiveMessageCount, found.DeadLetterMessageCount, found.ScheduledMessageCount,
			found.TransferMessageCount, found.TransferDeadLetterMessageCount}
		same(counts, given.Counted.Counts, what)
		var total int64
		for _, one := range counts {
			total += int64(one)
		}
		same(found.TotalMessageCount, total, what+" in total")
		same(found.SizeInBytes > 0, true, what+" size")
		same(found.UpdatedAt.Before(found.CreatedAt) || found.AccessedAt.Before(found.CreatedAt), false, what+" times")
	}
	check(got(client.GetQueueRuntimeProperties(ctx, given.Counted.Queue, nil)).QueueRuntimeProperties, "found")
	listed := 0
	for _, one := range allOf(ctx, client.NewListQueuesRuntimePropertiesPager(nil),
		func(p admin.ListQueuesRuntimePropertiesResponse) []admin.QueueRuntimePropertiesItem {
			return p.QueueRuntimeProperties
		}) {
		if one.QueueName == given.Counted.Queue {
			check(one.QueueRuntimeProperties, "listed")
			listed++
		}
	}
	same(listed, 1, "times it is listed")
	return ""
}
