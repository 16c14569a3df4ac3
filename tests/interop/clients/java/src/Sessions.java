package interop;

import static interop.Steps.bodies;
import static interop.Steps.check;
import static interop.Steps.condition;
import static interop.Steps.fails;
import static interop.Steps.nothing;
import static interop.Steps.same;
import static interop.Steps.sees;
import static interop.Steps.take;
import static interop.Steps.takeOne;
import static interop.Steps.text;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** azure-messaging-servicebus with message sessions. Scenario names: runner/scenarios.py. */
final class Sessions {
    private Sessions() {
    }

    static void register(Map<String, Steps.Body> all) {
        all.put("session/accept-named", Sessions::acceptNamed);
        all.put("session/accept-next", Sessions::acceptNext);
        all.put("session/accept-next-time-out", Sessions::acceptNextTimeOut);
        all.put("session/order", Sessions::order);
        all.put("session/state", Sessions::state);
        all.put("session/renew", Sessions::renew);
        all.put("session/locked-by-another", Sessions::lockedByAnother);
        all.put("session/deferral", Sessions::deferral);
        all.put("session/dead-letter", Sessions::deadLetter);
        all.put("session/missing-id-refused", Sessions::missingIdRefused);
    }

    private static ServiceBusMessage into(String session, String body) {
        return text(body).setSessionId(session);
    }

    /** Without the SDK's own lock renewal. */
    private static ServiceBusSessionReceiverClient sessions(Steps s, ServiceBusClientBuilder builder) {
        return s.keep(builder.sessionReceiver().queueName(s.queue).disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildClient());
    }

    private static ServiceBusReceiverClient accept(Steps s, String session) {
        return s.keep(sessions(s, s.builder()).acceptSession(session));
    }

    private static String acceptNamed(Steps s) {
        s.send(into("a", "for a"), into("b", "for b"));
        ServiceBusReceiverClient receiver = accept(s, "b");
        same(receiver.getSessionId(), "b", "session id");
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(List.of(got.getBody().toString(), got.getSessionId()), List.of("for b", "b"), "message");
        check(got.getLockedUntil().isAfter(OffsetDateTime.now()), "the lock ended " + got.getLockedUntil());
        receiver.complete(got);
        nothing(receiver);
        nothing(accept(s, "empty")); // a session need not have messages
        return "";
    }

    private static String acceptNext(Steps s) {
        s.send(into("only", "hello"));
        ServiceBusReceiverClient receiver = s.keep(sessions(s, s.builder()).acceptNextSession());
        same(receiver.getSessionId(), "only", "session id");
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(got.getBody().toString(), "hello", "body");
        receiver.complete(got);
        return "";
    }

    private static String acceptNextTimeOut(Steps s) {
        ServiceBusSessionReceiverClient hasty = sessions(s, s.builder(Duration.ofSeconds(4)));
        Predicate<Throwable> timeOut = t -> t instanceof ServiceBusException
            && ((ServiceBusException) t).getReason().equals(ServiceBusFailureReason.SERVICE_TIMEOUT);
        return fails("a time-out", timeOut.or(condition("com.microsoft:timeout")),
            () -> s.keep(hasty.acceptNextSession()));
    }

    private static String order(Steps s) {
        List<ServiceBusMessage> messages = new ArrayList<>();
        for (int n = 0; n < 20; ++n) {
            messages.add(into("x", "x" + n));
            messages.add(into("y", "y" + n));
        }
        s.send(messages.toArray(new ServiceBusMessage[0]));
        for (String session : List.of("y", "x")) {
            ServiceBusReceiverClient receiver = accept(s, session);
            List<ServiceBusReceivedMessage> got = take(receiver, 20);
            same(bodies(got), IntStream.range(0, 20).mapToObj(n -> session + n).collect(Collectors.toList()), "order");
            got.forEach(receiver::complete);
            sees(receiver, 10);
        }
        return "";
    }

    private static boolean isEmpty(byte[] state) {
        return state == null || state.length == 0;
    }

    private static String state(Steps s) {
        byte[] step = {0, 's', -1};
        ServiceBusReceiverClient receiver = accept(s, "s");
        check(isEmpty(receiver.getSessionState()), "a new session has a state");
        receiver.setSessionState(step);
        check(Arrays.equals(receiver.getSessionState(), step), "another state came back");
        receiver.close();
        check(isEmpty(accept(s, "other").getSessionState()), "another session has the state");
        receiver = accept(s, "s");
        check(Arrays.equals(receiver.getSessionState(), step), "another state after accepting again");
        receiver.setSessionState(null);
        check(isEmpty(receiver.getSessionState()), "the state was not cleared");
        return "";
    }

    private static String renew(Steps s) throws InterruptedException {
        s.send(into("r", "long work"));
        ServiceBusReceiverClient receiver = accept(s, "r");
        ServiceBusReceivedMessage got = takeOne(receiver);
        OffsetDateTime until = got.getLockedUntil();
        OffsetDateTime end = OffsetDateTime.now().plus(s.lock).plusSeconds(3);
        while (OffsetDateTime.now().isBefore(end)) {
            Thread.sleep(1500);
            OffsetDateTime renewed = receiver.renewSessionLock();
            check(renewed.isAfter(until), "the lock ended " + until + ", renewed until " + renewed);
            until = renewed;
        }
        receiver.complete(got);
        sees(receiver, 10);
        return "";
    }

    private static String lockedByAnother(Steps s) {
        ServiceBusSessionReceiverClient second = sessions(s, s.builder(Duration.ofSeconds(8)));
        ServiceBusReceiverClient first = accept(s, "mine");
        Predicate<Throwable> locked = t -> t instanceof ServiceBusException
            && ((ServiceBusException) t).getReason().equals(ServiceBusFailureReason.SESSION_CANNOT_BE_LOCKED);
        String why = fails("a locked session", locked.or(condition("com.microsoft:session-cannot-be-locked")),
            () -> s.keep(second.acceptSession("mine")));
        first.close();
        same(s.keep(second.acceptSession("mine")).getSessionId(), "mine", "session id"); // free again
        return why;
    }

    private static String deferral(Steps s) {
        s.send(into("d", "later"), into("d", "now"));
        ServiceBusReceiverClient receiver = accept(s, "d");
        ServiceBusReceivedMessage first = takeOne(receiver);
        receiver.defer(first);
        ServiceBusReceivedMessage second = takeOne(receiver);
        same(second.getBody().toString(), "now", "after the deferral");
        receiver.complete(second);
        ServiceBusReceivedMessage got = receiver.receiveDeferredMessage(first.getSequenceNumber());
        same(List.of(got.getBody().toString(), got.getSessionId(), got.getState()),
            List.of("later", "d", ServiceBusMessageState.DEFERRED), "by number");
        receiver.complete(got);
        sees(receiver, 10);
        return "";
    }

    private static String deadLetter(Steps s) {
        s.send(into("d", "poison"));
        ServiceBusReceiverClient receiver = accept(s, "d");
        receiver.deadLetter(takeOne(receiver),
            new DeadLetterOptions().setDeadLetterReason("r").setDeadLetterErrorDescription("d"));
        sees(receiver, 10);
        ServiceBusReceiverClient graves = s.graves(); // the dead-letter queue has no sessions
        ServiceBusReceivedMessage letter = takeOne(graves);
        same(List.of(letter.getBody().toString(), letter.getSessionId(), letter.getDeadLetterReason()),
            List.of("poison", "d", "r"), "dead letter");
        graves.complete(letter);
        sees(graves, 10);
        return "";
    }

    private static String missingIdRefused(Steps s) {
        // What the SDK makes of amqp:not-allowed.
        String why = fails("an unsupported operation", t -> t instanceof UnsupportedOperationException,
            () -> s.send("nobody's"));
        s.send(into("s", "somebody's"));
        ServiceBusReceiverClient receiver = accept(s, "s");
        ServiceBusReceivedMessage got = takeOne(receiver);
        same(got.getBody().toString(), "somebody's", "body");
        receiver.complete(got);
        return why;
    }
}
