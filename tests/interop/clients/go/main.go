// azservicebus and go-amqp against the broker. Scenario names: runner/scenarios.py.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	sb "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/coder/websocket"
)

var noRetry = sb.RetryOptions{MaxRetries: -1}

func deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 15*time.Second)
}

// Each of these opens one link to an entity that does not exist.
type use func(ctx context.Context, client *sb.Client) error

func useSender(ctx context.Context, client *sb.Client) error {
	sender, err := client.NewSender(given.Queue, nil)
	if err != nil {
		return err
	}
	return sender.SendMessage(ctx, &sb.Message{Body: []byte("x")}, nil)
}

func useReceiver(ctx context.Context, client *sb.Client) error {
	receiver, err := client.NewReceiverForQueue(given.Queue, nil)
	if err != nil {
		return err
	}
	_, err = receiver.ReceiveMessages(ctx, 1, nil)
	return err
}

func useSubscription(ctx context.Context, client *sb.Client) error {
	receiver, err := client.NewReceiverForSubscription(given.Topic, given.Subscription, nil)
	if err != nil {
		return err
	}
	_, err = receiver.ReceiveMessages(ctx, 1, nil)
	return err
}

func useSession(ctx context.Context, client *sb.Client) error {
	_, err := client.AcceptSessionForQueue(ctx, given.Queue, "session-1", nil)
	return err
}

// isNotFound: the SDK has a CodeNotFound, but makes it of $cbs and $management answers only. A refused
// link comes out as go-amqp's own error with the condition in it.
func isNotFound(err error) bool {
	var own *sb.Error
	if errors.As(err, &own) && own.Code == sb.CodeNotFound {
		return true
	}
	var remote *amqp.Error
	return errors.As(err, &remote) && remote.Condition == amqp.ErrCondNotFound
}

func isUnauthorized(err error) bool {
	var own *sb.Error
	return errors.As(err, &own) && own.Code == sb.CodeUnauthorizedAccess
}

func expect(client *sb.Client, run use, name string, matches func(error) bool) (string, error) {
	ctx, cancel := deadline()
	defer cancel()
	err := run(ctx, client)
	if err == nil {
		return "", fmt.Errorf("expected %s, but it worked", name)
	}
	if !matches(err) {
		return "", fmt.Errorf("expected %s, got %T: %w", name, err, err)
	}
	return fmt.Sprintf("%T: %v", err, err), nil
}

func closeSoon(client *sb.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := client.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "close:", err)
	}
}

type stringOf func(broker) string

func byString(which stringOf, options func(broker) *sb.ClientOptions, run use, name string, matches func(error) bool) scenario {
	return func() (string, error) {
		b := given.Brokers["main"]
		o := &sb.ClientOptions{}
		if options != nil {
			o = options(b)
		}
		o.RetryOptions = noRetry
		client, err := sb.NewClientFromConnectionString(which(b), o)
		if err != nil {
			return "", err
		}
		defer closeSoon(client)
		return expect(client, run, name, matches)
	}
}

func missing(which stringOf, options func(broker) *sb.ClientOptions, run use) scenario {
	return byString(which, options, run, "not found", isNotFound)
}

func refused(which stringOf) scenario {
	return byString(which, nil, useSender, "unauthorized", isUnauthorized)
}

func trusting(ca string) *tls.Config {
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(ca)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		fmt.Fprintln(os.Stderr, "no CA in", ca, err)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: "localhost"}
}

func tlsOptions(b broker) *sb.ClientOptions {
	return &sb.ClientOptions{TLSConfig: trusting(b.CA), CustomEndpoint: b.address()}
}

func websocketOptions(scheme string) func(broker) *sb.ClientOptions {
	return func(b broker) *sb.ClientOptions {
		return &sb.ClientOptions{NewWebSocketConn: func(ctx context.Context, args sb.NewWebSocketConnArgs) (net.Conn, error) {
			path := args.Host[strings.LastIndex(args.Host, "/$"):]
			conn, _, err := websocket.Dial(ctx, scheme+"://"+b.address()+path, &websocket.DialOptions{
				Subprotocols: []string{"amqp"},
				HTTPClient:   &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(b.CA)}},
			})
			if err != nil {
				return nil, err
			}
			return websocket.NetConn(context.Background(), conn, websocket.MessageBinary), nil
		}}
	}
}

func untrusted() (string, error) {
	b := given.Brokers["restart"]
	client, err := sb.NewClientFromConnectionString(b.TLS, &sb.ClientOptions{
		TLSConfig: trusting(given.UntrustedCA), CustomEndpoint: b.address(), RetryOptions: noRetry})
	if err != nil {
		return "", err
	}
	defer closeSoon(client)
	return expect(client, useSender, "an unknown authority", func(err error) bool {
		return strings.Contains(err.Error(), "certificate")
	})
}

type staticCredential string

func (s staticCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(s), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func byJWT(which, name string, matches func(error) bool) scenario {
	return func() (string, error) {
		b := given.Brokers["jwt"]
		o := tlsOptions(b)
		o.RetryOptions = noRetry
		client, err := sb.NewClient(b.Host, staticCredential(given.JWT[which]), o)
		if err != nil {
			return "", err
		}
		defer closeSoon(client)
		return expect(client, useSender, name, matches)
	}
}

func restart() (string, error) {
	client, err := sb.NewClientFromConnectionString(given.Brokers["restart"].Emulator, &sb.ClientOptions{
		RetryOptions: sb.RetryOptions{MaxRetries: 6, RetryDelay: 300 * time.Millisecond, MaxRetryDelay: time.Second}})
	if err != nil {
		return "", err
	}
	defer closeSoon(client)
	if detail, err := expect(client, useSender, "not found", isNotFound); err != nil {
		return detail, fmt.Errorf("before: %w", err)
	}
	ask("stop", "restart")
	during := make(chan error, 1)
	go func() {
		ctx, cancel := deadline()
		defer cancel()
		during <- useSender(ctx, client)
	}()
	time.Sleep(time.Second)
	ask("start", "restart")
	outcome := <-during
	if detail, err := expect(client, useSender, "not found", isNotFound); err != nil {
		return detail, fmt.Errorf("after: %w", err)
	}
	return fmt.Sprintf("during: %v", outcome), nil
}

// The remaining ones use go-amqp alone, as a plain AMQP client.
func dialPlain(key string, idle time.Duration) (*amqp.Conn, error) {
	ctx, cancel := deadline()
	defer cancel()
	return amqp.Dial(ctx, "amqp://"+given.Brokers["main"].address(), &amqp.ConnOptions{
		SASLType: amqp.SASLTypePlain(given.Rule, key), IdleTimeout: idle})
}

func attachMissing(conn *amqp.Conn) (string, error) {
	ctx, cancel := deadline()
	defer cancel()
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return "", err
	}
	_, err = session.NewSender(ctx, given.Queue, nil)
	if !isNotFound(err) {
		return "", fmt.Errorf("expected amqp:not-found, got %v", err)
	}
	return err.Error(), nil
}

func plainRightKey() (string, error) {
	conn, err := dialPlain(given.Key, 0)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return attachMissing(conn)
}

func plainWrongKey() (string, error) {
	conn, err := dialPlain("not-the-key", 0)
	if err == nil {
		conn.Close()
		return "", errors.New("the connection was accepted")
	}
	// go-amqp has no error type for a refused SASL layer; its text carries the outcome code.
	if !strings.Contains(err.Error(), "SASL PLAIN auth failed with code 0x1") {
		return "", fmt.Errorf("not a SASL refusal: %w", err)
	}
	return err.Error(), nil
}

func keepAlive() (string, error) {
	const idle = time.Second
	conn, err := dialPlain(given.Key, idle)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// go-amqp drops the connection when no frame came for the time it advertised... doubled or not,
	// four times of it is enough to notice.
	select {
	case <-conn.Done():
		return "", fmt.Errorf("the connection ended: %w", conn.Err())
	case <-time.After(4 * idle):
	}
	return attachMissing(conn)
}

func main() {
	emulator := func(b broker) string { return b.Emulator }
	secure := func(b broker) string { return b.TLS }
	all := map[string]scenario{
		"connect-tcp/sender":       missing(emulator, nil, useSender),
		"connect-tcp/receiver":     missing(emulator, nil, useReceiver),
		"connect-tcp/subscription": missing(emulator, nil, useSubscription),
		"connect-tcp/session":      missing(emulator, nil, useSession),
		"connect-tls/trusted":      missing(secure, tlsOptions, useSender),
		"connect-tls/untrusted":    untrusted,
		"connect-websocket/wss":    missing(secure, websocketOptions("wss"), useSender),
		"connect-websocket/ws":     missing(emulator, websocketOptions("ws"), useSender),
		"wrong-key/key":            refused(func(b broker) string { return b.WrongKey }),
		"wrong-key/rule":           refused(func(b broker) string { return b.WrongRule }),
		"wrong-key/expired-sas":    refused(func(b broker) string { return b.SasExpired }),
		"wrong-key/other-entity":   refused(func(b broker) string { return b.SasOtherEntity }),
		"wrong-key/malformed-sas":  refused(func(b broker) string { return b.SasMalformed }),
		"sas-string/namespace":     missing(func(b broker) string { return b.SasNamespace }, nil, useSender),
		"sas-string/entity":        missing(func(b broker) string { return b.SasEntity }, nil, useSender),
		"jwt/hs256":                byJWT("hs256", "not found", isNotFound),
		"jwt/rs256":                byJWT("rs256", "not found", isNotFound),
		"jwt/bad-signature":        byJWT("bad-signature", "unauthorized", isUnauthorized),
		"jwt/expired":              byJWT("expired", "unauthorized", isUnauthorized),
		"reconnect/restart":        restart,
		"plain/right-key":          plainRightKey,
		"plain/wrong-key":          plainWrongKey,
		"idle/keep-alive":          keepAlive,
	}
	all["admin/bearer"] = guarded(adminBearer)
	all["admin/transfer-counts"] = guarded(adminTransferCounts)
	for name, body := range adminScenarios {
		all[name] = withAdmin(body)
	}
	for _, more := range []map[string]func(*steps) string{queueScenarios, sessionScenarios, topicScenarios,
		partitionScenarios} {
		for name, body := range more {
			all[name] = withQueue(name, body)
		}
	}
	runAll(all)
}
