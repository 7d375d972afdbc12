//go:build cgo && !norocksdb

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// hostRecords are in the memory that is asked.
	hostRecords = 1000
	// hostTime is how long each way is asked at each rate, after hostWarm.
	hostTime, hostWarm = 6 * time.Second, time.Second
	// hostWait is how long the server may take to say where hosts are served.
	hostWait = 10 * time.Second
	// clockTicks is the number of ticks per second of the times in /proc.
	clockTicks = 100

	hostQuestion = "bitcoin day 7"
)

// hostRates are how often each client asks in a second.
var hostRates = []float64{1, 5, 20}

// way is how the same call is made.
type way struct {
	name string
	ask  func(ctx context.Context, client int) error
}

// hostTable measures MemoryQuery by gRPC and memory_query through the Model Context
// Protocol, while all clients call at a fixed rate. A late call counts from when it was
// due. The server's CPU time shows what a call costs; the wall clock shows how busy the
// machine is.
func hostTable(ctx context.Context, s settings, dir string) error {
	workspace, err := makeWorkspace(dir)
	if err != nil {
		return err
	}
	address := filepath.Join(dir, "mcp.log")
	log, err := os.Create(address)
	if err != nil {
		return err
	}
	defer log.Close()
	ours, err := startTo(ctx, log, s.server, "--addr", "127.0.0.1:0", "--mcp-addr", "127.0.0.1:0", "--embedder", "off", "--data-dir", filepath.Join(dir, "store"), "--workspace", workspace)
	if err != nil {
		return err
	}
	defer ours.stop()
	url, err := hostURL(address)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(ours.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	bridge := loombridgev1.NewBridgeServiceClient(conn)
	for i := range hostRecords {
		if _, err := bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: fmt.Sprint("Bitcoin closed at ", i, " on day ", i)}); err != nil {
			return err
		}
	}
	ways := []way{{"gRPC", func(ctx context.Context, _ int) error {
		_, err := bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: hostQuestion})
		return err
	}}}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		w, err := hostWay(ctx, url, version, s.clients)
		if err != nil {
			return err
		}
		ways = append(ways, w)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%d clients, each\tby\tp50\tp99\tp50 over gRPC\tserver's CPU a call\tcalls/s\t\n", s.clients)
	for _, rate := range hostRates {
		var base time.Duration
		for i, w := range ways {
			before := cpuOf(ours.command.Process.Pid)
			took, calls, err := askAll(ctx, w, rate, s.clients)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			spent := cpuOf(ours.command.Process.Pid) - before
			half := took[len(took)/2]
			if i == 0 {
				base = half
			}
			fmt.Fprintf(table, "%g/s\t%s\t%.2f ms\t%.2f ms\t%+.2f ms\t%.2f ms\t%.0f\t\n", rate, w.name, millis(half), millis(took[len(took)*99/100]),
				millis(half-base), millis(spent)/float64(calls), float64(len(took))/hostTime.Seconds())
		}
	}
	return table.Flush()
}

// hostURL is where a server says in its log that hosts are served, which it does when it
// serves all else.
func hostURL(log string) (string, error) {
	for end := time.Now().Add(hostWait); time.Now().Before(end); time.Sleep(hostWait / 1000) {
		text, err := os.ReadFile(log)
		if err != nil {
			return "", err
		}
		if _, rest, ok := strings.Cut(string(text), "http://"); ok && strings.Contains(rest, "\n") {
			return "http://" + strings.Fields(rest)[0] + "?agent=a", nil
		}
	}
	return "", errors.New("bench: the server does not say where hosts are served")
}

// hostWay makes clients that ask as hosts do which speak a version of the protocol.
func hostWay(ctx context.Context, url, version string, clients int) (way, error) {
	const params = `"name":"memory_query","arguments":{"query":"` + hostQuestion + `"}`
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`
	stateless := version >= "2026-07-28"
	if stateless {
		body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version +
			`","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	hosts := make([]*http.Client, clients)
	sessions := make([]string, clients)
	for i := range hosts {
		hosts[i] = &http.Client{Transport: &http.Transport{}}
		if stateless {
			continue
		}
		opened, _, err := post(ctx, hosts[i], url, version, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+
			`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
		if err != nil {
			return way{}, err
		}
		sessions[i] = opened
		if _, _, err := post(ctx, hosts[i], url, version, opened, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
			return way{}, err
		}
	}
	return way{"MCP " + version, func(ctx context.Context, client int) error {
		_, answer, err := post(ctx, hosts[client], url, version, sessions[client], body)
		if err == nil && !bytes.Contains(answer, []byte("Bitcoin closed")) {
			err = fmt.Errorf("bench: the host got  %.300s", answer)
		}
		return err
	}}, nil
}

// post sends one message as a host does.
func post(ctx context.Context, client *http.Client, url, version, session, body string) (opened string, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Protocol-Version", version)
	request.Header.Set("Mcp-Method", "tools/call")
	request.Header.Set("Mcp-Name", "memory_query")
	if session != "" {
		request.Header.Set("Mcp-Session-Id", session)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("bench: the host got  %s: %.300s", response.Status, answer)
	}
	return response.Header.Get("Mcp-Session-Id"), answer, err
}

// askAll has all clients ask at a rate, and returns how long each call took after the
// first ones, sorted, and how many there were in all.
func askAll(ctx context.Context, w way, rate float64, clients int) (took []time.Duration, calls int, failed error) {
	every := time.Duration(float64(time.Second) / rate)
	var mu sync.Mutex
	var all sync.WaitGroup
	counted := time.Now().Add(hostWarm)
	end := counted.Add(hostTime)
	for client := range clients {
		all.Go(func() {
			due := time.Now().Add(every * time.Duration(client) / time.Duration(clients))
			for ; due.Before(end); due = due.Add(every) {
				time.Sleep(time.Until(due))
				err := w.ask(ctx, client)
				mu.Lock()
				calls++
				if failed = errors.Join(failed, err); err == nil && due.After(counted) {
					took = append(took, time.Since(due))
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	if failed == nil && len(took) == 0 {
		failed = errors.New("bench: no call was counted")
	}
	slices.Sort(took)
	return took, calls, failed
}

// cpuOf is how long a process has been on the processors; 0 where unknown.
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // user and system
		n, _ := strconv.Atoi(field) // the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicks
}
