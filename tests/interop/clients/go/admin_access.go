// Authorization rules on entities, the rotation of their keys, and bearer tokens, with azservicebus/admin.
package main

import (
	"context"
	"fmt"
	"strings"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

var allRights = []admin.AccessRight{admin.AccessRightManage, admin.AccessRightSend, admin.AccessRightListen}

// keyRule is what a rule is compared by; the times in it are the broker's.
type keyRule struct {
	name, rights, primary, secondary string
}

func accessRule(name, primary, secondary string, rights ...admin.AccessRight) admin.AuthorizationRule {
	rule := admin.AuthorizationRule{KeyName: &name, AccessRights: rights}
	if primary != "" {
		rule.PrimaryKey, rule.SecondaryKey = &primary, &secondary
	}
	return rule
}

func shownRules(rules []admin.AuthorizationRule) []keyRule {
	all := []keyRule{}
	for _, rule := range rules {
		all = append(all, keyRule{value(rule.KeyName), fmt.Sprint(rule.AccessRights), value(rule.PrimaryKey),
			value(rule.SecondaryKey)})
	}
	return all
}

func keyedString(name, key string) string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;", given.Brokers["admin"].address(), name, key)
}

// as has a connection of its own, with the key of an entity's rule.
func (d *desk) as(name, key string, body func(own *desk)) {
	client := got(sb.NewClientFromConnectionString(keyedString(name, key)+"UseDevelopmentEmulator=true;",
		&sb.ClientOptions{RetryOptions: noRetry}))
	defer closeSoon(client)
	body(&desk{connectAdmin(keyedString(name, key)), client, d.ctx})
}

func (d *desk) sends(on, body string) error {
	return got(d.messages.NewSender(on, nil)).SendMessage(d.ctx, text(body), nil)
}

func (d *desk) receives(on string) (string, error) {
	receiver := got(d.messages.NewReceiverForQueue(on, nil))
	messages, err := receiver.ReceiveMessages(d.ctx, 1, nil)
	if err != nil {
		return "", err
	}
	must(receiver.CompleteMessage(d.ctx, messages[0], nil))
	return string(messages[0].Body), receiver.Close(d.ctx)
}

func keyRefused(err error) {
	if !isUnauthorized(err) {
		fail("expected that it is unauthorized, got %v", err)
	}
}

func adminAccessRules(d *desk) string {
	on, topic := adminName("access"), adminName("access-t")
	writer := accessRule("writer", "the-key-of-the-writer", "another-key-of-it", admin.AccessRightSend)
	made := got(d.CreateQueue(d.ctx, on, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{writer, accessRule("owner", "", "", allRights...)}}})).QueueProperties
	found := shownRules(made.AuthorizationRules)
	same(len(found), 2, "rules")
	same(found[0], keyRule{"writer", "[Send]", "the-key-of-the-writer", "another-key-of-it"}, "as it was set")
	owner := found[1]
	same([]string{owner.name, owner.rights}, []string{"owner", "[Manage Send Listen]"}, "the one without keys")
	same([]int{len(owner.primary), len(owner.secondary)}, []int{44, 44}, "keys made by the broker")
	same(owner.primary != owner.secondary, true, "its keys differ")
	same(shownRules(got(d.GetQueue(d.ctx, on, nil)).AuthorizationRules), found, "read again")
	for _, one := range allOf(d.ctx, d.NewListQueuesPager(nil),
		func(p admin.ListQueuesResponse) []admin.QueueItem { return p.Queues }) {
		if one.QueueName == on {
			same(shownRules(one.AuthorizationRules), found, "listed")
		}
	}
	d.as("writer", "the-key-of-the-writer", func(own *desk) {
		must(own.sends(on, "written"))
		keyRefused(second(own.receives(on)))
		adminRefused(second(own.GetQueue(d.ctx, on, nil)), 401, "40100")
	})
	d.as("owner", owner.secondary, func(own *desk) {
		same(got(own.receives(on)), "written", "with a key that the broker made")
	})

	reader := accessRule("reader", "one", "two", admin.AccessRightListen)
	about := got(d.CreateTopic(d.ctx, topic, &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
		AuthorizationRules: []admin.AuthorizationRule{reader}}})).TopicProperties
	same(shownRules(about.AuthorizationRules), []keyRule{{"reader", "[Listen]", "one", "two"}}, "of a topic")
	about.AuthorizationRules[0].AccessRights = []admin.AccessRight{admin.AccessRightListen, admin.AccessRightSend}
	must(second(d.UpdateTopic(d.ctx, topic, about, nil)))
	same(shownRules(got(d.GetTopic(d.ctx, topic, nil)).AuthorizationRules),
		[]keyRule{{"reader", "[Listen Send]", "one", "two"}}, "of a topic, changed")
	made.AuthorizationRules = nil
	same(shownRules(got(d.UpdateQueue(d.ctx, on, made, nil)).AuthorizationRules), []keyRule{}, "none any more")
	d.as("writer", "the-key-of-the-writer", func(own *desk) { keyRefused(own.sends(on, "too late")) })
	adminRefused(second(d.CreateQueue(d.ctx, adminName("never"), &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{accessRule("half", "", "", admin.AccessRightManage)}}})), 400, "40000")
	must(second(d.DeleteQueue(d.ctx, on, nil)))
	must(second(d.DeleteTopic(d.ctx, topic, nil)))
	return ""
}

func adminKeyRotation(d *desk) string {
	on := adminName("rotation")
	keys := func(primary, secondary string) []admin.AuthorizationRule {
		return []admin.AuthorizationRule{accessRule("rotor", primary, secondary, allRights...)}
	}
	made := got(d.CreateQueue(d.ctx, on, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		AuthorizationRules: keys("first-key", "second-key")}})).QueueProperties
	d.as("rotor", "first-key", func(own *desk) {
		same(got(own.GetQueue(d.ctx, on, nil)).QueueName, on, "the entity's key over HTTP")
		must(own.sends(on, "one"))
		made.AuthorizationRules = keys("third-key", "second-key")
		same(shownRules(got(d.UpdateQueue(d.ctx, on, made, nil)).AuthorizationRules),
			[]keyRule{{"rotor", "[Manage Send Listen]", "third-key", "second-key"}}, "rotated")
		keyRefused(second(own.receives(on))) // a new link on the connection that is open
	})
	d.as("rotor", "first-key", func(own *desk) {
		keyRefused(own.sends(on, "never"))
		adminRefused(second(own.GetQueue(d.ctx, on, nil)), 401, "40103")
	})
	d.as("rotor", "third-key", func(own *desk) { must(own.sends(on, "two")) })
	d.as("rotor", "second-key", func(own *desk) {
		same([]string{got(own.receives(on)), got(own.receives(on))}, []string{"one", "two"}, "with the secondary key")
	})
	// The second one, by the client that holds the first.
	d.as("rotor", "third-key", func(own *desk) {
		made.AuthorizationRules = keys("third-key", "fourth-key")
		must(second(own.UpdateQueue(d.ctx, on, made, nil)))
	})
	d.as("rotor", "second-key", func(own *desk) { keyRefused(own.sends(on, "never")) })
	d.as("rotor", "fourth-key", func(own *desk) { must(own.sends(on, "three")) })
	same(got(d.receives(on)), "three", "what came")
	must(second(d.DeleteQueue(d.ctx, on, nil)))
	return ""
}

// A credential object: a bearer token of an issuer that the broker trusts.
func adminBearer(ctx context.Context) string {
	b := given.Brokers["jwt"]
	with := func(kind string) *admin.Client {
		return got(admin.NewClient(b.address(), staticCredential(given.JWT[kind]), adminOptions(b)))
	}
	on, to := adminName("bearer"), adminName("bearer-to")
	for _, kind := range []string{"hs256", "rs256"} {
		client := with(kind)
		must(second(client.CreateQueue(ctx, to, nil)))
		made := got(client.CreateQueue(ctx, on, &admin.CreateQueueOptions{
			Properties: &admin.QueueProperties{ForwardTo: &to, ForwardDeadLetteredMessagesTo: &to}})).QueueProperties
		same(strings.HasSuffix(*made.ForwardTo, "/"+to), true, "ForwardTo "+*made.ForwardTo)
		made.MaxDeliveryCount = pointer[int32](3)
		must(second(client.UpdateQueue(ctx, on, made, nil)))
		same(*got(client.GetQueue(ctx, on, nil)).MaxDeliveryCount, int32(3), "updated")
		var names []string
		for _, one := range allOf(ctx, client.NewListQueuesPager(nil),
			func(p admin.ListQueuesResponse) []admin.QueueItem { return p.Queues }) {
			if strings.HasPrefix(one.QueueName, on) {
				names = append(names, one.QueueName)
			}
		}
		same(names, []string{on, to}, "listed")
		must(second(client.DeleteQueue(ctx, on, nil)))
		must(second(client.DeleteQueue(ctx, to, nil)))
	}
	for kind, code := range map[string]string{"send-only": "40100", "expired": "40106", "other-audience": "40104",
		"bad-signature": "40103"} {
		adminRefused(second(with(kind).CreateQueue(ctx, on, nil)), 401, code)
	}
	same(got(with("send-only").GetNamespaceProperties(ctx, nil)).Name, "sbemulatorns", "any right will do")
	return ""
}
