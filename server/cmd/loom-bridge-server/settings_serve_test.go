package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func servingEffects() []effect {
	return []effect{
		{
			setting: "bridge-name", args: []string{"--bridge-name", "first"}, both: []string{"--store", "$PG"},
			see:  func(s *stand) func() string { return once(fmt.Sprint(s.bridges(s.tb)[0].GetName() == "first")) },
			with: "true", without: "false",
		},
		{
			setting: "workspace-shared", args: []string{"--workspace-shared"}, both: []string{"--store", "$PG"},
			see:  func(s *stand) func() string { return once(fmt.Sprint(s.bridges(s.tb)[0].GetWorkspace() == "")) },
			with: "true", without: "false",
		},
		{ // it has the store to itself
			setting: "mesh", args: []string{"--mesh", "embedded"},
			see:  func(s *stand) func() string { return once(s.status()) },
			with: notStarted, without: "OK",
		},
		{ // that is another machine's
			setting: "mesh-listen", args: []string{"--mesh-listen", "192.0.2.1:0"}, both: []string{"--store", "$PG", "--mesh", "embedded"},
			see:  func(s *stand) func() string { return once(s.status()) },
			with: notStarted, without: "OK",
		},
		{
			setting: "bridge-addr", args: []string{"--bridge-addr", "a.example:7"}, both: []string{"--store", "$PG"},
			see:  func(s *stand) func() string { return once(fmt.Sprint(s.bridges(s.tb)[0].GetAddress() == s.Address)) },
			with: "false", without: "true",
		},
		{
			setting: "config", args: []string{"--config", "$DIR/loom.toml"}, files: map[string]string{"loom.toml": "durability = \"wal\"\n"},
			see: (*stand).statedDurability, with: "wal", without: "sync",
		},
		{
			setting: "addr", args: []string{"--addr", "unix:$DIR/s"},
			see:  func(s *stand) func() string { return once(s.status() + " at " + addressKind(s.Address)) },
			with: "OK at a socket", without: "OK at a port",
		},
		{
			setting: "http-addr", args: []string{"--http-addr", "127.0.0.1:0"}, after: 50 * time.Millisecond,
			see: func(s *stand) func() string {
				return func() string { return fmt.Sprint(httpAddress.MatchString(s.Log.String())) }
			},
			with: "true", without: "false",
		},
		{
			setting: "proxy-upstreams", args: []string{"--proxy-upstreams", "mine=$API"}, both: []string{"--http-addr", "127.0.0.1:0"},
			see: func(s *stand) func() string {
				answer, err := http.Get(s.httpURL(s.tb) + "/proxy/mine/api/tags")
				must(s.tb, err)
				must(s.tb, answer.Body.Close())
				return once(answer.Status)
			},
			with: "200 OK", without: "404 Not Found",
		},
		{
			setting: "mcp-addr", args: []string{"--mcp-addr", "127.0.0.1:0"}, after: 50 * time.Millisecond,
			see: func(s *stand) func() string {
				return func() string { return fmt.Sprint(mcpAddress.MatchString(s.Log.String())) }
			},
			with: "true", without: "false",
		},
		{
			setting: "mcp-servers", args: []string{"--mcp-servers", `[{"name":"one","command":"/no/such"}]`},
			see: func(s *stand) func() string {
				return func() string {
					return fmt.Sprint(strings.Contains(s.Log.String(), "Loading MCP servers") && strings.Contains(s.Log.String(), "server=one"))
				}
			},
			with: "true", without: "false",
		},
		{
			setting: "mcp-hosts", args: []string{"--mcp-hosts", "loom.example"}, both: []string{"--mcp-addr", "127.0.0.1:0"},
			see: func(s *stand) func() string {
				request := post(s.tb, s.mcpURL(s.tb), initializeBody)
				request.Host = "loom.example"
				return once(fmt.Sprint(statusOf(s.tb, request)))
			},
			with: "200", without: "403",
		},
		{
			setting: "addr-file", args: []string{"--addr-file", "$DIR/address"},
			see: func(s *stand) func() string {
				text, _ := os.ReadFile(filepath.Join(s.dir, "address"))
				return once(fmt.Sprint(strings.TrimSpace(string(text)) == s.Address))
			},
			with: "true", without: "false",
		},
		{
			setting: "data-dir", args: []string{"--data-dir", "$DIR/elsewhere"},
			see:  func(s *stand) func() string { return once(s.exists("elsewhere/LOOM-FORMAT")) },
			with: "there", without: "not there",
		},
		{
			setting: "store", args: []string{"--store", "rocksdb:$DIR/beside", "--data-dir", "$DIR/beside"},
			see:  func(s *stand) func() string { return once(s.exists("beside/LOOM-FORMAT")) },
			with: "there", without: "not there",
		},
		{
			setting: "ephemeral", args: []string{"--ephemeral"},
			see:  func(s *stand) func() string { return once(s.exists("store/LOOM-FORMAT")) },
			with: "not there", without: "there",
		},
		{
			setting: "workspace", args: []string{"--workspace", "$DIR/first"}, both: []string{"--workspace", "$DIR/second"},
			files: map[string]string{"first/only.txt": "here", "second/other.txt": "there"},
			see: func(s *stand) func() string {
				return once(fmt.Sprint(strings.Contains(s.tool("fs:read_file", `{"path":"only.txt"}`), "here")))
			},
			with: "true", without: "false",
		},
		{
			setting: "durability", args: []string{"--durability", "wal"}, both: []string{"--metrics-addr", "127.0.0.1:0"},
			see:  (*stand).syncsOfASave,
			with: "none", without: "some",
		},
		{
			setting: "durability", args: []string{"--durability", "none"},
			see: (*stand).statedDurability, with: "none", without: "sync",
		},
	}
}

// status is how a call of a client in the open ends.
func (s *stand) status() string {
	_, err := loombridgev1.NewAdminServiceClient(s.conn).GetStatus(s.ctx, &loombridgev1.GetStatusRequest{})
	return ended(err)
}

func (s *stand) statedDurability() func() string {
	got, err := loombridgev1.NewAdminServiceClient(s.conn).GetStatus(s.ctx, &loombridgev1.GetStatusRequest{})
	must(s.tb, err)
	return once(got.GetDurability())
}

// syncsOfASave reports whether a save makes the store sync its log.
func (s *stand) syncsOfASave() func() string {
	address := s.metrics(s.tb)
	before := scrape(s.tb, address)["loom_bridge_store_syncs_total"]
	save(s.tb, s.process, "x")
	if scrape(s.tb, address)["loom_bridge_store_syncs_total"] > before {
		return once("some")
	}
	return once("none")
}

func addressKind(address string) string {
	if strings.HasPrefix(address, "unix:") {
		return "a socket"
	}
	return "a port"
}

func accessEffects() []effect {
	certificate := []string{"--tls-cert", "$DIR/server.pem", "--tls-key", "$DIR/server.key"}
	callers := map[string]string{"callers.toml": credentialOf("acme", `["*"]`, "")}
	loom := []string{"--credentials", "$DIR/callers.toml", "--loom-addr", "unix:$DIR/l"}
	return []effect{
		{
			setting: "credentials", args: []string{"--credentials", "$DIR/callers.toml"}, files: callers,
			see: func(s *stand) func() string { return once(s.status()) }, with: "UNAUTHENTICATED", without: "OK",
		},
		{
			setting: "trust-network", args: []string{"--trust-network"}, both: []string{"--addr", "0.0.0.0:0"},
			see: func(s *stand) func() string { return once(s.status()) }, with: "OK", without: notStarted,
		},
		{
			setting: "tls-cert", args: certificate, files: certificates("server"),
			see: (*stand).overTLS, with: "OK", without: "Unavailable",
		},
		{
			setting: "tls-key", args: certificate, files: certificates("server"),
			see: (*stand).overTLS, with: "OK", without: "Unavailable",
		},
		{
			setting: "tls-client-ca", args: []string{"--tls-client-ca", "$DIR/server.pem"}, both: certificate, files: certificates("server"),
			see: (*stand).overTLS, with: "Unavailable, with a certificate OK", without: "OK",
		},
		{
			setting: "loom-addr", args: []string{"--loom-addr", "unix:$DIR/l", "--loom-tenant", "acme"}, both: loom[:2], files: callers,
			see: (*stand).loomOf, with: "acme hears it", without: "Unavailable",
		},
		{
			setting: "loom-tenant", args: []string{"--loom-tenant", "acme"}, both: loom, files: callers,
			see: (*stand).loomOf, with: "acme hears it", without: notStarted,
		},
	}
}

// overTLS greets the server over TLS, without a certificate and if that is refused
// with one.
func (s *stand) overTLS() func() string {
	pem, err := os.ReadFile(filepath.Join(s.dir, "server.pem"))
	must(s.tb, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	seen := ended(s.greet(s.tb, &tls.Config{RootCAs: roots}))
	own, err := tls.LoadX509KeyPair(filepath.Join(s.dir, "server.pem"), filepath.Join(s.dir, "server.key"))
	must(s.tb, err)
	if seen != "OK" && s.greet(s.tb, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}) == nil {
		seen += ", with a certificate OK"
	}
	return once(seen)
}

// loomOf publishes over loom.v1 and reports whether the tenant acme hears it.
func (s *stand) loomOf() func() string {
	ctx, cancel := context.WithTimeout(s.ctx, waitTime)
	defer cancel()
	stream, err := loombridgev1.NewEventServiceClient(s.conn).Subscribe(as(ctx, "acme"), &loombridgev1.SubscribeRequest{
		AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "news"}},
	})
	must(s.tb, err)
	_, err = stream.Recv()
	must(s.tb, err)
	_, err = loomv1pb.NewEventBusClient(MustDial(s.tb, "unix:"+filepath.Join(s.dir, "l"))).Publish(s.ctx, &loomv1pb.PublishRequest{
		Topic: "news", Event: &loomv1pb.Event{Id: "e", Type: "t"},
	})
	if err != nil {
		return once(ended(err))
	}
	if _, err := stream.Recv(); err != nil {
		return once(ended(err))
	}
	return once("acme hears it")
}

func watchingEffects() []effect {
	logged := func(pattern string) func(s *stand) func() string {
		return func(s *stand) func() string {
			s.status()
			return func() string { return fmt.Sprint(regexp.MustCompile(pattern).MatchString(s.Log.String())) }
		}
	}
	return []effect{
		{
			setting: "metrics-addr", args: []string{"--metrics-addr", "127.0.0.1:0"}, after: 50 * time.Millisecond,
			see: func(s *stand) func() string {
				return func() string {
					found := regexp.MustCompile(`metrics +http://(\S+)/metrics`).FindStringSubmatch(s.Log.String())
					if found == nil {
						return "no metrics"
					}
					return fmt.Sprint(scrape(s.tb, found[1])["go_goroutines"] > 0)
				}
			},
			with: "true", without: "no metrics",
		},
		{
			setting: "otel", args: []string{"--otel"}, both: []string{"--http-addr", "127.0.0.1:0"},
			see: func(s *stand) func() string {
				_, err := s.bridge().MemorySave(traced(s.ctx), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "pears"})
				must(s.tb, err)
				return func() string { return fmt.Sprint(leadsToTrace(s.tb, s.httpURL(s.tb))) }
			},
			with: "true", without: "false",
		},
		{setting: "log-level", args: []string{"--log-level", "debug"}, see: logged(`level=DEBUG msg=call method=\S+GetStatus`), with: "true", without: "false"},
		{setting: "log-format", args: []string{"--log-format", "json"}, see: logged(`^\{"time":`), with: "true", without: "false"},
	}
}

// certificates are the files of a certificate for localhost.
func certificates(name string) map[string]string {
	cert, key := newCertificate(name)
	return map[string]string{name + ".pem": string(cert), name + ".key": string(key)}
}

func limitEffects() []effect {
	return []effect{
		{
			setting: "max-receive-bytes", args: []string{"--max-receive-bytes", "1KiB"},
			see: func(s *stand) func() string {
				_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: strings.Repeat("word ", 1000)})
				return once(ended(err))
			},
			with: "TOO_LARGE", without: "OK",
		},
		{
			setting: "max-calls", args: []string{"--max-calls", "1"}, change: func(_ *stand, c *Config) { c.Limits.MaxWaitingCalls = 1 },
			see:  func(s *stand) func() string { return manyCalls(s.ctx, s.saving()) },
			with: "OVERLOADED: calls in flight", without: "OK",
		},
		{
			setting: "max-streams", args: []string{"--max-streams", "1"},
			see: func(s *stand) func() string {
				s.open(s.tb, "")
				return once(ended(s.listen()))
			},
			with: "OVERLOADED", without: "OK",
		},
		{
			setting: "max-connections", args: []string{"--max-connections", "1"},
			see: func(s *stand) func() string {
				must(s.tb, s.listen()) // the first connection is made
				return once(s.soon(&process{conn: MustDial(s.tb, s.Address)}))
			},
			with: "DeadlineExceeded", without: "OK",
		},
		{
			// The call lasts long past the default, and ends long before the setting.
			setting: "drain-timeout", args: []string{"--drain-timeout", "1m"},
			both: []string{"--workspace", "$DIR/work", "--shell-allow", "sh"}, files: map[string]string{"work/f": ""},
			see: func(s *stand) func() string {
				answer := make(chan string, 1)
				go func() {
					answer <- s.tool("system:shell", `{"command":"sh","args":["-c","touch begun; sleep 6; echo done"]}`)
				}()
				eventually(s.tb, waitTime, func() error {
					_, err := os.Stat(filepath.Join(s.dir, "work/begun"))
					return err
				})
				must(s.tb, s.Stop())
				return once(fmt.Sprint("finished: ", strings.Contains(<-answer, "done")))
			},
			with: "finished: true", without: "finished: false",
		},
	}
}

// soon makes a call that must not wait long.
func (s *stand) soon(p *process) string {
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
	defer cancel()
	_, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(ctx, &loombridgev1.GetStatusRequest{})
	return status.Code(err).String()
}

// listen opens a subscription and waits for its first message.
func (s *stand) listen() error {
	stream, err := loombridgev1.NewEventServiceClient(s.conn).Subscribe(s.ctx, &loombridgev1.SubscribeRequest{
		AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "other"}},
	})
	if err == nil {
		_, err = stream.Recv()
	}
	return err
}
