package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// effect shows that a started server with a setting behaves otherwise than one
// without it, to a client.
type effect struct {
	// setting is the name in the table.
	setting string
	// args are the flags that set it; $DIR in them is a directory of the effect's
	// own, $API the embedder's address, $WEB and $HOST those of a site of everything, $SECURE and $CERT the
	// same in TLS, $PG a store in PostgreSQL.
	args []string
	// both are flags of the server with it and of the one without.
	both []string
	// change sets what no setting does, of both servers.
	change func(s *stand, c *Config)
	// files are written into $DIR.
	files map[string]string
	// before works on a server of the flags both, which then stops: the two servers
	// find what it left.
	before func(s *stand)
	// see does what shows the setting, and returns what looks at the outcome: it is
	// called again until it sees what the setting does.
	see func(s *stand) (look func() string)
	// with is what is seen with the setting, without what is seen otherwise, after
	// so much time.
	with, without string
	after         time.Duration
}

// notStarted is what is seen of a server that does not start.
const notStarted = "does not start"

// stand is a server and what works on it.
type stand struct {
	tb testing.TB
	*process
	ctx context.Context
	dir string // $DIR
	// change sets what no setting does; nil for nothing.
	change func(s *stand, c *Config)
	agent  string
	// refusal is why the server did not start; empty when it did.
	refusal string
	model   *fakeModel
	site    *fakeSite
}

// effects are those of all settings.
func effects() []effect {
	return slices.Concat(servingEffects(), accessEffects(), watchingEffects(), memoryEffects(), embedderEffects(), historyEffects(),
		promptEffects(), sessionEffects(), resultEffects(), compressEffects(), blobEffects(), eventEffects(), sharingEffects(), workspaceEffects(), sandboxEffects(), webEffects(), scrubEffects(), backupEffects(), limitEffects())
}

// Every setting of the table has an effect that a client sees.
func TestEverySettingHasAnEffect(t *testing.T) {
	t.Parallel()
	var shown []string
	for _, e := range effects() {
		shown = append(shown, e.setting)
		if e.with == e.without {
			t.Errorf("--%s: %q is seen with it and without it", e.setting, e.with)
		}
	}
	for _, name := range settingNames() {
		if !slices.Contains(shown, name) {
			t.Errorf("--%s: add a row that shows what a server does with it", name)
		}
	}
	for _, name := range shown {
		if !slices.Contains(settingNames(), name) {
			t.Errorf("--%s is no setting", name)
		}
	}
}

// A started server does what each setting says, and would do otherwise without it.
//
// K01, K03, K05, K06, K07, K08, K11, K12, K13, K14, K15, K18, K20, K22, K23, K30, K31, K34, K36, K37, K38, K39, K40, K41, K48, K49, K50, K51, K52, K54, P05
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, e := range effects() {
		t.Run(e.setting, func(t *testing.T) {
			t.Parallel()
			if got := e.observe(t, e.args, e.with, 0); got != e.with {
				t.Errorf("with %v: %q, want %q", e.args, got, e.with)
			}
			if got := e.observe(t, nil, e.without, e.after); got != e.without {
				t.Errorf("without %v: %q, want %q", e.args, got, e.without)
			}
		})
	}
}

// observe starts a server and looks, after a while, until it sees the one thing.
func (e effect) observe(t *testing.T, args []string, want string, after time.Duration) string {
	s := &stand{tb: t, ctx: t.Context(), dir: t.TempDir(), agent: "a", model: MustModel(t), site: MustSite(t), change: e.change}
	for name, text := range e.files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	if e.before != nil {
		if s.start(e.both); s.process == nil {
			t.Fatal(s.refusal)
		}
		e.before(s)
		must(t, s.Stop())
	}
	s.start(slices.Concat(e.both, args))
	if s.process == nil {
		t.Log(s.refusal)
		return notStarted
	}
	defer func() { _ = s.Stop() }()
	look := e.see(s)
	time.Sleep(after)
	got := look()
	for limit := time.Now().Add(waitTime); got != want && time.Now().Before(limit); got = look() {
		time.Sleep(2 * time.Millisecond)
	}
	return got
}

// start runs a server on the stand.
func (s *stand) start(args []string) {
	s.tb.Helper()
	filled := []string{"--addr", "127.0.0.1:0", "--data-dir", filepath.Join(s.dir, "store"), "--workspace", s.dir}
	for _, arg := range args {
		if strings.Contains(arg, "$PG") {
			arg = strings.ReplaceAll(arg, "$PG", postgresPlace(s.tb, pgtest.Address(s.tb)))
		}
		filled = append(filled, strings.NewReplacer("$DIR", s.dir, "$API", s.model.URL, "$MODEL", s.model.Listener.Addr().String(), "$WEB", s.site.URL, "$HOST", s.site.host(), "$SECURE", s.site.secure.Listener.Addr().String(), "$CERT", s.site.cert).Replace(arg))
	}
	change := func(c *Config) {
		if s.change != nil {
			s.change(s, c)
		}
	}
	p, err := tryRunWith(s.tb, noEnvironment, change, filled...)
	if err != nil {
		s.process, s.refusal = nil, err.Error()
		return
	}
	s.process = p
}

// once is for what is seen at once and stays.
func once(seen string) func() string { return func() string { return seen } }

// ended is how a call ended: OK or its code, with the reason where there is one.
func ended(err error) string {
	if reason := reasonOf(err); reason != "" {
		return reason
	}
	return status.Code(err).String()
}

func (s *stand) contexts() contexts.Client {
	return contexts.New(s.conn)
}

// exists tells what there is of a file in $DIR.
func (s *stand) exists(name string) string {
	if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil {
		return "not there"
	}
	return "there"
}

// tool calls a tool and returns its answer as JSON, or why it failed.
func (s *stand) tool(name, args string) string { return s.toolIn("", name, args) }

// toolIn is tool within a session.
func (s *stand) toolIn(session, name, args string) string {
	s.tb.Helper()
	got, err := s.bridge().Tool(convert.AskText(s.ctx), &loombridgev1.ToolRequest{
		AgentId: s.agent, SessionId: session, Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
	})
	switch {
	case err != nil:
		return ended(err)
	case !got.GetSuccess():
		return got.GetErrorCode().String()
	}
	return got.GetOutputJson()
}

// record records the call of a tool that succeeded.
func (s *stand) record(session, tool, args, output string) *loombridgev1.RecordStepResponse {
	s.tb.Helper()
	got, err := s.contexts().RecordStep(s.ctx, recordOf(s.agent, session, tool, args, output))
	must(s.tb, err)
	return got
}

func recordOf(agent, session, tool, args, output string) *loombridgev1.RecordStepRequest {
	return &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: session, ToolName: tool, Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: output},
	}
}

// read records that a file of so many bytes was read.
func (s *stand) read(session, path string, bytes int) *loombridgev1.RecordStepResponse {
	s.tb.Helper()
	return s.record(session, "fs:read_file", fmt.Sprintf(`{"path":%q}`, path),
		fmt.Sprintf(`{"path":%q,"content":%q}`, path, strings.Repeat("x", bytes)))
}
