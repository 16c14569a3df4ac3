// Forwarding that azservicebus/admin sets up: to where, and with whose permission.
package main

import (
	"strings"

	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

func leadsTo(uri *string, name string) {
	same(strings.HasSuffix(value(uri), "/"+name), true, "leads to "+name+": "+value(uri))
}

func (d *desk) givesUp(receiver *sb.Receiver) {
	must(receiver.DeadLetterMessage(d.ctx, d.takes(receiver, 1)[0], nil))
}

func adminForward(d *desk) string {
	on, to, dead := adminName("forward"), adminName("forward-to"), adminName("forward-dead")
	shape := &admin.CreateQueueOptions{Properties: &admin.QueueProperties{ForwardTo: &to, ForwardDeadLetteredMessagesTo: &dead}}
	adminRefused(second(d.CreateQueue(d.ctx, on, shape)), 404, "40400")
	must(second(d.CreateQueue(d.ctx, to, nil)))
	must(second(d.CreateQueue(d.ctx, dead, nil)))
	made := got(d.CreateQueue(d.ctx, on, shape)).QueueProperties
	leadsTo(made.ForwardTo, to)
	leadsTo(made.ForwardDeadLetteredMessagesTo, dead)
	must(d.sends(on, "passed on"))
	same(got(d.receives(to)), "passed on", "forwarded")
	made.ForwardTo = nil
	same(got(d.UpdateQueue(d.ctx, on, made, nil)).ForwardTo == nil, true, "no more")
	must(d.sends(on, "given up"))
	d.givesUp(got(d.messages.NewReceiverForQueue(on, nil)))
	same(got(d.receives(dead)), "given up", "the dead letter")
	for _, one := range []string{on, to, dead} {
		must(second(d.DeleteQueue(d.ctx, one, nil)))
	}
	return ""
}

func adminForwardSubscription(d *desk) string {
	on, to, dead := adminName("forward-s"), adminName("forward-s-to"), adminName("forward-s-dead")
	must(second(d.CreateTopic(d.ctx, on, nil)))
	shape := &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
		ForwardTo: &to, ForwardDeadLetteredMessagesTo: &dead}}
	adminRefused(second(d.CreateSubscription(d.ctx, on, "s", shape)), 404, "40400")
	must(second(d.CreateQueue(d.ctx, to, nil)))
	must(second(d.CreateQueue(d.ctx, dead, nil)))
	made := got(d.CreateSubscription(d.ctx, on, "s", shape)).SubscriptionProperties
	leadsTo(made.ForwardTo, to)
	leadsTo(made.ForwardDeadLetteredMessagesTo, dead)
	must(d.sends(on, "passed on"))
	same(got(d.receives(to)), "passed on", "forwarded")
	made.ForwardTo = nil
	changed := got(d.UpdateSubscription(d.ctx, on, "s", made, nil))
	same(changed.ForwardTo == nil, true, "no more")
	leadsTo(changed.ForwardDeadLetteredMessagesTo, dead)
	must(d.sends(on, "given up"))
	d.givesUp(got(d.messages.NewReceiverForSubscription(on, "s", nil)))
	same(got(d.receives(dead)), "given up", "the dead letter")
	must(second(d.DeleteTopic(d.ctx, on, nil)))
	must(second(d.DeleteQueue(d.ctx, to, nil)))
	must(second(d.DeleteQueue(d.ctx, dead, nil)))
	return ""
}

// The client signs for the target with the key it has; that key must have Send there.
func adminForwardRights(d *desk) string {
	on, to := adminName("rights"), adminName("rights-to")
	mover := func(rights ...admin.AccessRight) *admin.QueueProperties {
		return &admin.QueueProperties{AuthorizationRules: []admin.AuthorizationRule{
			accessRule("mover", "move-key", "spare-key", rights...)}}
	}
	made := got(d.CreateQueue(d.ctx, on, &admin.CreateQueueOptions{Properties: mover(allRights...)})).QueueProperties
	must(second(d.CreateQueue(d.ctx, to, &admin.CreateQueueOptions{Properties: mover(admin.AccessRightListen)})))
	own := connectAdmin(keyedString("mover", "move-key"))
	forwards, dead, both := made, made, made
	forwards.ForwardTo, dead.ForwardDeadLetteredMessagesTo = &to, &to
	both.ForwardTo, both.ForwardDeadLetteredMessagesTo = &to, &to
	adminRefused(second(own.UpdateQueue(d.ctx, on, forwards, nil)), 401, "40100")
	adminRefused(second(own.UpdateQueue(d.ctx, on, dead, nil)), 401, "40100")
	found := got(d.GetQueue(d.ctx, on, nil))
	same(found.ForwardTo == nil && found.ForwardDeadLetteredMessagesTo == nil, true, "nothing was set")
	must(second(d.UpdateQueue(d.ctx, to, admin.QueueProperties{}, nil)))
	adminRefused(second(own.UpdateQueue(d.ctx, on, forwards, nil)), 401, "40103")
	must(second(d.UpdateQueue(d.ctx, to, *mover(admin.AccessRightSend), nil)))
	changed := got(own.UpdateQueue(d.ctx, on, both, nil))
	leadsTo(changed.ForwardTo, to)
	leadsTo(changed.ForwardDeadLetteredMessagesTo, to)
	must(second(d.DeleteQueue(d.ctx, on, nil)))
	must(second(d.DeleteQueue(d.ctx, to, nil)))
	return ""
}
