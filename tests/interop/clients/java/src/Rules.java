package interop;

import static interop.Steps.check;
import static interop.Steps.condition;
import static interop.Steps.fails;
import static interop.Steps.peek;
import static interop.Steps.same;
import static interop.Steps.sees;
import static interop.Steps.text;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.FalseRuleFilter;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** azure-messaging-servicebus: the rule manager of a subscription. Names: runner/scenarios.py. */
final class Rules {
    private Rules() {
    }

    static void register(Map<String, Steps.Body> all) {
        all.put("rule/add-enumerate", Rules::addEnumerate);
        all.put("rule/configured", Rules::configured);
        all.put("rule/default-removed", Rules::defaultRemoved);
        all.put("rule/remove", Rules::remove);
        all.put("rule/duplicate-name", Rules::duplicateName);
        all.put("rule/bad-sql", Rules::badSql);
        all.put("rule/later-messages-only", Rules::laterMessagesOnly);
        all.put("rule/action", Rules::action);
        all.put("rule/while-publishing", Rules::whilePublishing);
    }

    private static ServiceBusRuleManagerClient manager(Steps s, String subscription) {
        return s.keep(s.builder().ruleManager().topicName(s.queue).subscriptionName(subscription).buildClient());
    }

    private static Map<String, RuleProperties> rules(ServiceBusRuleManagerClient manager) {
        Map<String, RuleProperties> all = new TreeMap<>();
        manager.listRules().forEach(rule -> check(all.put(rule.getName(), rule) == null, rule.getName() + " is twice there"));
        return all;
    }

    private static CreateRuleOptions sql(String expression) {
        return new CreateRuleOptions(new SqlRuleFilter(expression));
    }

    private static CreateRuleOptions label(String label) {
        return new CreateRuleOptions(new CorrelationRuleFilter().setLabel(label));
    }

    private static String sqlOf(RuleProperties rule) {
        return ((SqlRuleFilter) rule.getFilter()).getSqlExpression();
    }

    private static ServiceBusMessage number(String body, int n) {
        ServiceBusMessage message = text(body);
        message.getApplicationProperties().put("n", n);
        return message;
    }

    private static String addEnumerate(Steps s) {
        ServiceBusRuleManagerClient manager = manager(s, "a");
        CorrelationRuleFilter correlation = new CorrelationRuleFilter("c").setMessageId("m").setTo("t").setReplyTo("r")
            .setLabel("l").setSessionId("se").setReplyToSessionId("rs").setContentType("ct");
        correlation.getProperties().putAll(Map.of("text", "ż", "whole", 2, "long", 3L, "half", 0.5, "yes", true));
        manager.createRule("sql", sql("color = 'żółty' AND n > 1").setAction(new SqlRuleAction("SET n = 2")));
        manager.createRule("true", new CreateRuleOptions(new TrueRuleFilter()));
        manager.createRule("false", new CreateRuleOptions(new FalseRuleFilter()));
        manager.createRule("correlation", new CreateRuleOptions(correlation));
        manager.createRule("one-field", label("only").setAction(new SqlRuleAction("REMOVE color")));
        Map<String, RuleProperties> rules = rules(manager);
        same(rules.keySet(), Set.of("$Default", "sql", "true", "false", "correlation", "one-field"), "names");
        check(rules.get("$Default").getFilter() instanceof TrueRuleFilter, "$Default is no true filter");
        check(rules.get("true").getFilter() instanceof TrueRuleFilter, "true is no true filter");
        check(rules.get("false").getFilter() instanceof FalseRuleFilter, "false is no false filter");
        same(sqlOf(rules.get("sql")), "color = 'żółty' AND n > 1", "sql");
        same(((SqlRuleAction) rules.get("sql").getAction()).getSqlExpression(), "SET n = 2", "action");
        CorrelationRuleFilter got = (CorrelationRuleFilter) rules.get("correlation").getFilter();
        correlation.getProperties().replaceAll((name, value) -> value.toString()); // the SDK gives texts back
        same(got, correlation, "correlation");
        CorrelationRuleFilter one = (CorrelationRuleFilter) rules.get("one-field").getFilter();
        same(one, new CorrelationRuleFilter().setLabel("only"), "one field");
        same(((SqlRuleAction) rules.get("one-field").getAction()).getSqlExpression(), "REMOVE color", "its action");
        same(rules(manager(s, "b")).keySet(), Set.of("$Default"), "another subscription");
        return "";
    }

    private static String configured(Steps s) {
        Map<String, RuleProperties> rules = rules(manager(s, "a"));
        same(rules.keySet(), Set.of("correlation", "false", "sql", "true"), "names");
        same(sqlOf(rules.get("sql")), "n > 1", "sql");
        same(((SqlRuleAction) rules.get("sql").getAction()).getSqlExpression(), "SET n = 2", "action");
        check(rules.get("true").getFilter() instanceof TrueRuleFilter, "true is no true filter");
        check(rules.get("false").getFilter() instanceof FalseRuleFilter, "false is no false filter");
        CorrelationRuleFilter got = (CorrelationRuleFilter) rules.get("correlation").getFilter();
        same(got.getLabel(), "l", "label");
        same(got.getProperties(), Map.of("text", "t", "whole", "2", "half", "0.5", "yes", "true"), "properties");
        return "";
    }

    private static String defaultRemoved(Steps s) {
        ServiceBusRuleManagerClient manager = manager(s, "a");
        manager.deleteRule("$Default");
        same(rules(manager).keySet(), Set.of(), "rules");
        s.publish("m1");
        manager.createRule("two", sql("n = 2"));
        s.publish(number("m2", 2), text("m3"));
        s.holds("a", "m2");
        manager.createRule("$Default", new CreateRuleOptions(new TrueRuleFilter()));
        s.publish("m4");
        s.holds("a", "m4");
        s.holds("b", "m1", "m2", "m3", "m4");
        return "";
    }

    private static String remove(Steps s) {
        ServiceBusRuleManagerClient manager = manager(s, "a");
        manager.createRule("Extra", new CreateRuleOptions(new FalseRuleFilter()));
        manager.deleteRule("eXTRA"); // names are case-insensitive
        same(rules(manager).keySet(), Set.of("$Default"), "rules");
        return fails("amqp:not-found", condition("amqp:not-found"), () -> manager.deleteRule("Extra"));
    }

    private static String duplicateName(Steps s) {
        String taken = "com.microsoft:entity-already-exists";
        ServiceBusRuleManagerClient manager = manager(s, "a");
        manager.createRule("once", sql("n = 1"));
        fails(taken, condition(taken), () -> manager.createRule("once", sql("n = 1")));
        String why = fails(taken, condition(taken), () -> manager.createRule("ONCE", label("x")));
        same(sqlOf(rules(manager).get("once")), "n = 1", "the first one");
        return why;
    }

    private static String badSql(Steps s) {
        ServiceBusRuleManagerClient manager = manager(s, "a");
        List<String> whys = new ArrayList<>();
        for (CreateRuleOptions bad : List.of(sql("color ="), sql("sys.Nope = 1"),
            sql("1=1").setAction(new SqlRuleAction("SET sys.SequenceNumber = 1")),
            sql("1=1").setAction(new SqlRuleAction("DELETE color")), sql("x".repeat(1025)))) {
            whys.add(fails("com.microsoft:argument-error", condition("com.microsoft:argument-error"),
                () -> manager.createRule("bad", bad)));
        }
        check(whys.get(1).contains("Nope") && whys.get(2).contains("SequenceNumber"), "they do not say what is wrong: " + whys);
        same(rules(manager).keySet(), Set.of("$Default"), "rules");
        return String.join(" | ", whys);
    }

    private static String laterMessagesOnly(Steps s) {
        ServiceBusRuleManagerClient manager = manager(s, "a");
        s.publish("before");
        manager.createRule("none", new CreateRuleOptions(new FalseRuleFilter()));
        manager.deleteRule("$Default");
        s.publish("during");
        manager.createRule("label", label("wanted"));
        s.publish(text("other"), text("after").setSubject("wanted"));
        s.holds("a", "before", "after");
        return "";
    }

    private static String action(Steps s) {
        manager(s, "a").createRule("mark",
            sql("n > 1").setAction(new SqlRuleAction("SET n = n + 1; SET text = 'it''s'")));
        s.publish(number("m1", 1), number("m2", 2));
        List<Map<String, Object>> got = s.holds("a", "m1", "m2", "m2").stream()
            .map(ServiceBusReceivedMessage::getApplicationProperties).collect(Collectors.toList());
        same(got, List.of(Map.of("n", 1), Map.of("n", 2), Map.of("n", 3, "text", "it's", "RuleName", "mark")), "copies");
        return "";
    }

    private static String whilePublishing(Steps s) {
        ServiceBusRuleManagerClient manager = manager(s, "a");
        String[] expected = IntStream.range(0, 150).mapToObj(n -> "m" + n).toArray(String[]::new);
        CompletableFuture<Void> published = CompletableFuture.runAsync(() -> s.publish(expected));
        int changes = 0;
        for (; !published.isDone(); ++changes) {
            manager.createRule("marked", sql("1=1").setAction(new SqlRuleAction("SET marked = TRUE")));
            manager.deleteRule("$Default");
            manager.createRule("$Default", new CreateRuleOptions(new TrueRuleFilter()));
            manager.deleteRule("marked");
        }
        published.join();
        sees(s.subscription("b"), 200, expected);
        // In "a" each message is there plain, marked or both: there was always a rule that takes everything.
        Map<String, String> kinds = new HashMap<>();
        List<String> order = new ArrayList<>();
        for (ServiceBusReceivedMessage got : peek(s.subscription("a"), 500, 1)) {
            String body = got.getBody().toString();
            Object rule = got.getApplicationProperties().getOrDefault("RuleName", "plain");
            if (kinds.merge(body, rule.toString(), (first, second) -> first + "," + second).equals(rule)) {
                order.add(body);
            }
        }
        same(order, List.of(expected), "order");
        kinds.forEach((body, kind) -> check(Set.of("plain", "marked", "plain,marked").contains(kind),
            body + " is there as " + kind));
        return changes + " rounds of changes";
    }
}
