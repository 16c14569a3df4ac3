// The frame of the Go client: runs the wanted scenarios one by one and reports each on stdout.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

type broker struct {
	Host           string            `json:"host"`
	Port           int               `json:"port"`
	CA             string            `json:"ca"`
	Emulator       string            `json:"emulator"`
	TLS            string            `json:"tls"`
	WrongKey       string            `json:"wrong_key"`
	WrongRule      string            `json:"wrong_rule"`
	SasNamespace   string            `json:"sas_namespace"`
	SasEntity      string            `json:"sas_entity"`
	SasExpired     string            `json:"sas_expired"`
	SasOtherEntity string            `json:"sas_other_entity"`
	SasMalformed   string            `json:"sas_malformed"`
	AdminWrongKey  string            `json:"admin_wrong_key"`
	AdminSendOnly  string            `json:"admin_send_only"`
	Tokens         map[string]string `json:"tokens"`
}

func (b broker) address() string { return fmt.Sprintf("%s:%d", b.Host, b.Port) }

// counted is a queue that somebody left messages in, and how many of each kind.
type counted struct {
	Queue  string  `json:"queue"`
	Counts []int32 `json:"counts"`
}

type contextFile struct {
	Scenarios    []string          `json:"scenarios"`
	Together     []string          `json:"together"`
	Queues       map[string]string `json:"queues"`
	Destinations map[string]string `json:"destinations"`
	Sources      map[string]string `json:"sources"`
	LockSeconds  int               `json:"lock_seconds"`
	Queue        string            `json:"queue"`
	Topic        string            `json:"topic"`
	Subscription string            `json:"subscription"`
	Rule         string            `json:"rule"`
	Key          string            `json:"key"`
	Brokers      map[string]broker `json:"brokers"`
	JWT          map[string]string `json:"jwt"`
	UntrustedCA  string            `json:"untrusted_ca"`
	Counted      counted           `json:"counted"`
}

var (
	given   contextFile
	answers = bufio.NewScanner(os.Stdin)
)

// A scenario passes when it returns no error; the text is the detail.
type scenario func() (string, error)

const (
	scenarioLimit = 20 * time.Second
	atATime       = 4
)

// ask has the runner stop or start a broker and waits until it has done so.
func ask(verb, name string) {
	line, _ := json.Marshal(map[string]string{"ask": verb, "broker": name})
	fmt.Println(string(line))
	answers.Scan()
}

func runAll(scenarios map[string]scenario) {
	data, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(data, &given)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// One by one, and those that disturb nobody several at a time after that.
	var together []string
	for _, name := range given.Scenarios {
		if slices.Contains(given.Together, name) {
			together = append(together, name)
		} else {
			judge(name, scenarios[name])
		}
	}
	names := make(chan string)
	var workers sync.WaitGroup
	for range atATime {
		workers.Go(func() {
			for name := range names {
				judge(name, scenarios[name])
			}
		})
	}
	for _, name := range together {
		names <- name
	}
	close(names)
	workers.Wait()
}

func judge(name string, run scenario) {
	detail, err := runOne(run)
	if err != nil {
		detail = err.Error()
	}
	line, _ := json.Marshal(map[string]any{"scenario": name, "ok": err == nil, "detail": detail})
	fmt.Println(string(line))
}

func runOne(run scenario) (string, error) {
	if run == nil {
		return "", errors.New("this client does not know the scenario")
	}
	type outcome struct {
		detail string
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		detail, err := run()
		done <- outcome{detail, err}
	}()
	select {
	case o := <-done:
		return o.detail, o.err
	case <-time.After(scenarioLimit):
		return "", fmt.Errorf("the scenario took longer than %v", scenarioLimit)
	}
}
