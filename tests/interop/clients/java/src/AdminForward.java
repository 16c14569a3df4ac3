package interop;

import static interop.Administration.fails;
import static interop.Administration.named;
import static interop.Steps.check;
import static interop.Steps.same;

import com.azure.core.exception.ClientAuthenticationException;
import com.azure.core.exception.ResourceNotFoundException;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.models.AccessRights;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** Forwarding that the administration client sets up: to where, and with whose permission. */
final class AdminForward {
    private final Report report;

    private AdminForward(Report report) {
        this.report = report;
    }

    static void register(Report report, Map<String, Callable<String>> all) {
        AdminForward it = new AdminForward(report);
        all.put("admin/forward", it::queue);
        all.put("admin/forward-subscription", it::subscription);
        all.put("admin/forward-rights", it::rights);
    }

    private ServiceBusClientBuilder messages() {
        return Administration.messages(report.broker("admin").get("emulator").asText());
    }

    private static void leadsTo(String uri, String name) {
        check(uri != null && uri.endsWith("/" + name), "leads to " + uri + ", not " + name);
    }

    private void sends(ServiceBusClientBuilder.ServiceBusSenderClientBuilder builder, String body) {
        try (ServiceBusSenderClient sender = builder.buildClient()) {
            sender.sendMessage(new ServiceBusMessage(body));
        }
    }

    private void has(String queue, String body) {
        try (ServiceBusReceiverClient receiver = messages().receiver().queueName(queue).buildClient()) {
            same(Administration.taken(receiver, 1), List.of(body), "in " + queue);
        }
    }

    private static void givesUp(ServiceBusClientBuilder.ServiceBusReceiverClientBuilder builder) {
        try (ServiceBusReceiverClient receiver = builder.disableAutoComplete().buildClient()) {
            receiver.deadLetter(Steps.takeOne(receiver));
        }
    }

    private String queue() {
        var admin = Administration.builder(report, "tls").buildClient();
        String on = named("forward");
        String to = named("forward-to");
        String dead = named("forward-dead");
        CreateQueueOptions options = new CreateQueueOptions().setForwardTo(to).setForwardDeadLetteredMessagesTo(dead);
        fails(ResourceNotFoundException.class, () -> admin.createQueue(on, options), "40400");
        admin.createQueue(to);
        admin.createQueue(dead);
        // The client writes whole addresses into the options it was given.
        QueueProperties made = admin.createQueue(on,
            new CreateQueueOptions().setForwardTo(to).setForwardDeadLetteredMessagesTo(dead));
        leadsTo(made.getForwardTo(), to);
        leadsTo(made.getForwardDeadLetteredMessagesTo(), dead);
        sends(messages().sender().queueName(on), "passed on");
        has(to, "passed on");
        QueueProperties changed = admin.updateQueue(made.setForwardTo(null));
        same(changed.getForwardTo(), null, "no more");
        leadsTo(changed.getForwardDeadLetteredMessagesTo(), dead);
        sends(messages().sender().queueName(on), "given up");
        givesUp(messages().receiver().queueName(on));
        has(dead, "given up");
        List.of(on, to, dead).forEach(admin::deleteQueue);
        return "";
    }

    private String subscription() {
        var admin = Administration.builder(report, "tls").buildClient();
        String on = named("forward-s");
        String to = named("forward-s-to");
        String dead = named("forward-s-dead");
        admin.createTopic(on);
        fails(ResourceNotFoundException.class,
            () -> admin.createSubscription(on, "s", new CreateSubscriptionOptions().setForwardTo(to)), "40400");
        admin.createQueue(to);
        admin.createQueue(dead);
        SubscriptionProperties made = admin.createSubscription(on, "s",
            new CreateSubscriptionOptions().setForwardTo(to).setForwardDeadLetteredMessagesTo(dead));
        leadsTo(made.getForwardTo(), to);
        leadsTo(made.getForwardDeadLetteredMessagesTo(), dead);
        sends(messages().sender().topicName(on), "passed on");
        has(to, "passed on");
        SubscriptionProperties changed = admin.updateSubscription(made.setForwardTo(null));
        same(changed.getForwardTo(), null, "no more");
        leadsTo(changed.getForwardDeadLetteredMessagesTo(), dead);
        sends(messages().sender().topicName(on), "given up");
        givesUp(messages().receiver().topicName(on).subscriptionName("s"));
        has(dead, "given up");
        admin.deleteTopic(on);
        admin.deleteQueue(to);
        admin.deleteQueue(dead);
        return "";
    }

    private static void mayMove(QueueProperties queue, List<AccessRights> rights) {
        queue.getAuthorizationRules().clear();
        queue.getAuthorizationRules().add(AdminAccess.rule("mover", "move-key", "spare-key", rights));
    }

    /** The client signs for the target with the key it has; that key must have Send there. */
    private String rights() {
        var admin = Administration.builder(report, "tls").buildClient();
        String on = named("rights");
        String to = named("rights-to");
        QueueProperties made = admin.createQueue(on);
        mayMove(made, AdminAccess.ALL);
        admin.updateQueue(made);
        QueueProperties target = admin.createQueue(to);
        mayMove(target, List.of(AccessRights.LISTEN));
        admin.updateQueue(target);
        var mover = AdminAccess.admin(report, "mover", "move-key");
        fails(ClientAuthenticationException.class, () -> mover.updateQueue(admin.getQueue(on).setForwardTo(to)), "40100");
        fails(ClientAuthenticationException.class,
            () -> mover.updateQueue(admin.getQueue(on).setForwardDeadLetteredMessagesTo(to)), "40100");
        same(admin.getQueue(on).getForwardTo(), null, "nothing was set");
        same(admin.getQueue(on).getForwardDeadLetteredMessagesTo(), null, "nothing was set");
        target.getAuthorizationRules().clear();
        admin.updateQueue(target);
        fails(ClientAuthenticationException.class, () -> mover.updateQueue(admin.getQueue(on).setForwardTo(to)), "40103");
        mayMove(target, List.of(AccessRights.SEND));
        admin.updateQueue(target);
        QueueProperties both =
            mover.updateQueue(admin.getQueue(on).setForwardTo(to).setForwardDeadLetteredMessagesTo(to));
        leadsTo(both.getForwardTo(), to);
        leadsTo(both.getForwardDeadLetteredMessagesTo(), to);
        admin.deleteQueue(on);
        admin.deleteQueue(to);
        return "";
    }
}
