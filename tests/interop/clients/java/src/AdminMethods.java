package interop;

import static interop.Administration.named;
import static interop.Steps.check;
import static interop.Steps.same;

import com.azure.core.exception.ResourceNotFoundException;
import com.azure.core.http.rest.PagedFlux;
import com.azure.core.http.rest.PagedIterable;
import com.azure.core.http.rest.Response;
import com.azure.core.util.Context;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.NamespaceProperties;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.QueueRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import com.azure.messaging.servicebus.administration.models.SubscriptionRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import com.azure.messaging.servicebus.administration.models.TopicRuntimeProperties;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import reactor.core.publisher.Mono;

/**
 * Every public method of an administration client, each of its overloads, is called here by reflection, and what it
 * says is looked at. The synchronous and the asynchronous client have the same methods but for the context that the
 * forms WithResponse and the listings of the synchronous one take.
 */
final class AdminMethods {
    private static final Duration LIMIT = Duration.ofSeconds(10);

    private final Object client;
    private final boolean hasContext;
    private final String queue;
    private final String topic;
    private final Set<Method> left = new LinkedHashSet<>();

    AdminMethods(Object client, String name) {
        this.client = client;
        hasContext = client instanceof ServiceBusAdministrationClient;
        queue = named(name);
        topic = queue + "-t";
        Arrays.stream(client.getClass().getDeclaredMethods())
            .filter(m -> Modifier.isPublic(m.getModifiers()) && !m.isSynthetic()).forEach(left::add);
    }

    private static boolean takes(Method method, Object[] given) {
        Class<?>[] types = method.getParameterTypes();
        if (types.length != given.length) {
            return false;
        }
        for (int i = 0; i < given.length; ++i) {
            if (!types[i].isInstance(given[i])) {
                return false;
            }
        }
        return true;
    }

    private Object call(String name, Object... given) {
        List<Method> found = Arrays.stream(client.getClass().getMethods())
            .filter(m -> m.getName().equals(name) && takes(m, given)).collect(Collectors.toList());
        same(found.size(), 1, "methods " + name + " for " + Arrays.toString(given));
        left.remove(found.get(0));
        try {
            Object answer = found.get(0).invoke(client, given);
            if (answer instanceof Mono) {
                return ((Mono<?>) answer).block(LIMIT);
            }
            if (answer instanceof PagedFlux) {
                return ((PagedFlux<?>) answer).collectList().block(LIMIT);
            }
            return answer instanceof PagedIterable
                ? ((PagedIterable<?>) answer).stream().collect(Collectors.toList()) : answer;
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof RuntimeException) {
                throw (RuntimeException) e.getCause();
            }
            throw new IllegalStateException(e.getCause());
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    private Object[] inContext(Object... given) {
        return hasContext ? Stream.concat(Arrays.stream(given), Stream.of(Context.NONE)).toArray() : given;
    }

    /** The form WithResponse of a method. */
    private Object response(int status, String name, Object... given) {
        Response<?> answer = (Response<?>) call(name + "WithResponse", inContext(given));
        same(answer.getStatusCode(), status, "status of " + name);
        return answer.getValue();
    }

    /** Both forms of a method that only looks: `what` of their answers is `expected`. */
    private <T> void looks(String name, Class<T> kind, Function<T, Object> what, Object expected, Object... given) {
        same(what.apply(kind.cast(call(name, given))), expected, name);
        same(what.apply(kind.cast(response(200, name, given))), expected, name + "WithResponse");
    }

    private <T> void lists(String name, Class<T> kind, Function<T, String> what, List<String> expected,
        Object... given) {
        for (Object found : hasContext ? List.of(call(name, given), call(name, inContext(given)))
            : List.of(call(name, given))) {
            same(((List<?>) found).stream().map(one -> what.apply(kind.cast(one)))
                .filter(one -> one.startsWith(queue) || expected.contains(one)).collect(Collectors.toList()),
                expected, name);
        }
    }

    private void gone(String name, Object... given) {
        Administration.fails(ResourceNotFoundException.class, () -> call(name, given), "");
    }

    String tour() {
        looks("getNamespaceProperties", NamespaceProperties.class, NamespaceProperties::getName, "sbemulatorns");
        queues();
        topics();
        subscriptions();
        rules();
        same(call("getTopicExists", topic), true, "exists");
        call("deleteTopic", topic);
        response(200, "deleteTopic", topic + "2");
        same(call("getTopicExists", topic), false, "deleteTopic");
        same(call("getTopicExists", topic + "2"), false, "deleteTopicWithResponse");
        gone("getTopic", topic);
        check(left.isEmpty(), "not called: " + left);
        return client.getClass().getSimpleName();
    }

    private void queues() {
        same(((QueueProperties) call("createQueue", queue)).getMaxDeliveryCount(), 10, "createQueue");
        CreateQueueOptions three = new CreateQueueOptions().setMaxDeliveryCount(3);
        same(((QueueProperties) call("createQueue", queue + "2", three)).getMaxDeliveryCount(), 3, "with options");
        QueueProperties made = (QueueProperties) response(201, "createQueue", queue + "3", three);
        same(made.getMaxDeliveryCount(), 3, "createQueueWithResponse");
        looks("getQueue", QueueProperties.class, QueueProperties::getName, queue, queue);
        looks("getQueueExists", Boolean.class, exists -> exists, true, queue);
        looks("getQueueRuntimeProperties", QueueRuntimeProperties.class, QueueRuntimeProperties::getTotalMessageCount, 0L,
            queue);
        lists("listQueues", QueueProperties.class, QueueProperties::getName, List.of(queue, queue + "2", queue + "3"));
        QueueProperties four = (QueueProperties) call("updateQueue", made.setMaxDeliveryCount(4));
        same(four.getMaxDeliveryCount(), 4, "updateQueue");
        QueueProperties five = (QueueProperties) response(200, "updateQueue", made.setMaxDeliveryCount(5));
        same(five.getMaxDeliveryCount(), 5, "updateQueueWithResponse");
        call("deleteQueue", queue);
        call("deleteQueue", queue + "2");
        response(200, "deleteQueue", queue + "3");
        gone("getQueue", queue);
        gone("getQueue", queue + "3");
    }

    private void topics() {
        same(((TopicProperties) call("createTopic", topic)).getName(), topic, "createTopic");
        CreateTopicOptions noted = new CreateTopicOptions().setUserMetadata("a");
        TopicProperties made = (TopicProperties) call("createTopic", topic + "2", noted);
        same(made.getUserMetadata(), "a", "with options");
        same(((TopicProperties) response(201, "createTopic", topic + "3", noted)).getUserMetadata(), "a",
            "createTopicWithResponse");
        looks("getTopic", TopicProperties.class, TopicProperties::getName, topic, topic);
        looks("getTopicExists", Boolean.class, exists -> exists, true, topic);
        looks("getTopicRuntimeProperties", TopicRuntimeProperties.class, TopicRuntimeProperties::getSubscriptionCount, 0,
            topic);
        lists("listTopics", TopicProperties.class, TopicProperties::getName, List.of(topic, topic + "2", topic + "3"));
        same(((TopicProperties) call("updateTopic", made.setUserMetadata("b"))).getUserMetadata(), "b", "updateTopic");
        same(((TopicProperties) response(200, "updateTopic", made.setUserMetadata("c"))).getUserMetadata(), "c",
            "updateTopicWithResponse");
        call("deleteTopic", topic + "3");
    }

    private void subscriptions() {
        CreateSubscriptionOptions five = new CreateSubscriptionOptions().setMaxDeliveryCount(5);
        CreateRuleOptions red = new CreateRuleOptions(new SqlRuleFilter("color = 'red'"));
        same(((SubscriptionProperties) call("createSubscription", topic, "a")).getMaxDeliveryCount(), 10, "plain");
        SubscriptionProperties made = (SubscriptionProperties) call("createSubscription", topic, "b", five);
        same(made.getMaxDeliveryCount(), 5, "with options");
        call("createSubscription", topic, "c", "first", new CreateSubscriptionOptions(), red);
        same(((SubscriptionProperties) response(201, "createSubscription", topic, "d",
            new CreateSubscriptionOptions().setMaxDeliveryCount(5))).getMaxDeliveryCount(), 5, "WithResponse");
        response(201, "createSubscription", topic, "e", "first", new CreateSubscriptionOptions(), red);
        for (String name : List.of("c", "e")) {
            lists("listRules", RuleProperties.class, RuleProperties::getName, List.of("first"), topic, name);
        }
        looks("getSubscription", SubscriptionProperties.class, SubscriptionProperties::getSubscriptionName, "a", topic,
            "a");
        looks("getSubscriptionExists", Boolean.class, exists -> exists, true, topic, "a");
        looks("getSubscriptionRuntimeProperties", SubscriptionRuntimeProperties.class,
            SubscriptionRuntimeProperties::getTotalMessageCount, 0L, topic, "a");
        lists("listSubscriptions", SubscriptionProperties.class, SubscriptionProperties::getSubscriptionName,
            List.of("a", "b", "c", "d", "e"), topic);
        same(((SubscriptionProperties) call("updateSubscription", made.setMaxDeliveryCount(6))).getMaxDeliveryCount(), 6,
            "updateSubscription");
        same(((SubscriptionProperties) response(200, "updateSubscription", made.setMaxDeliveryCount(7)))
            .getMaxDeliveryCount(), 7, "updateSubscriptionWithResponse");
        call("deleteSubscription", topic, "b");
        response(200, "deleteSubscription", topic, "c");
        lists("listSubscriptions", SubscriptionProperties.class, SubscriptionProperties::getSubscriptionName,
            List.of("a", "d", "e"), topic);
    }

    private void rules() {
        call("createRule", topic, "a", "one");
        // One form of the synchronous client, and only that, takes the rule's name first.
        RuleProperties made = (RuleProperties) call("createRule", topic, hasContext ? "two" : "a",
            hasContext ? "a" : "two", new CreateRuleOptions(new SqlRuleFilter("n = 2")));
        response(201, "createRule", topic, "a", "three", new CreateRuleOptions(new SqlRuleFilter("n = 3")));
        lists("listRules", RuleProperties.class, RuleProperties::getName, List.of("$Default", "one", "three", "two"), topic,
            "a");
        Function<RuleProperties, Object> text = rule -> ((SqlRuleFilter) rule.getFilter()).getSqlExpression();
        looks("getRule", RuleProperties.class, text, "n = 3", topic, "a", "three");
        same(text.apply((RuleProperties) call("updateRule", topic, "a", made.setFilter(new SqlRuleFilter("n = 4")))),
            "n = 4", "updateRule");
        same(text.apply((RuleProperties) response(200, "updateRule", topic, "a",
            made.setFilter(new SqlRuleFilter("n = 5")))), "n = 5", "updateRuleWithResponse");
        call("deleteRule", topic, "a", "one");
        response(200, "deleteRule", topic, "a", "two");
        lists("listRules", RuleProperties.class, RuleProperties::getName, List.of("$Default", "three"), topic, "a");
    }
}
