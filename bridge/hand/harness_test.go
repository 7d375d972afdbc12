package hand_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var (
	agent = kv.AgentScope("default", "tester")
	other = kv.AgentScope("default", "other")
)

// epoch is when the steps of a test are taken.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a hand with everything it works on, over an engine that can fail.
type world struct {
	tb       testing.TB
	dir      string
	engine   *kvtest.FaultyEngine
	writer   *kv.Writer
	log      *session.Log
	blobs    *blob.Store
	registry *tools.Registry // of the hand's catalogue
	folders  *hand.Folders
	*hand.Hand
}

// MustWorld returns a world whose workspace holds files. Nil opts are a hand's
// defaults, with the time standing still.
func MustWorld(tb testing.TB, files map[string]string, opts *hand.Options) *world {
	tb.Helper()
	w := &world{tb: tb, dir: tb.TempDir()}
	for name, content := range files {
		w.put(name, content)
	}
	folders, err := hand.OpenFolders(w.dir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	w.folders = folders
	w.engine = kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
	w.start(opts)
	tb.Cleanup(func() {
		w.stop()
		if err := folders.Close(); err != nil {
			tb.Error(err)
		}
		if err := w.engine.Close(); err != nil {
			tb.Error(err)
		}
	})
	return w
}

// stored are blobs alone, without the log.
type stored struct{ *blob.Store }

func (s stored) Lookup(ctx context.Context, scope kv.Scope, _, name string) (blob.Entry, error) {
	return s.Store.Lookup(ctx, scope, name)
}

// start builds everything above the engine, as a new process would.
func (w *world) start(opts *hand.Options) {
	w.tb.Helper()
	now := func() time.Time { return epoch }
	o := hand.Options{Now: now}
	if opts != nil {
		o = *opts
		if o.Now == nil {
			o.Now = now
		}
	}
	w.writer = kv.NewWriter(w.engine, nil)
	w.log = session.New(w.engine, w.writer, &session.Options{Now: o.Now})
	w.blobs = blob.New(w.engine, w.writer, &blob.Options{Now: o.Now})
	w.registry = tools.NewRegistry(nil)
	if err := native.Register(w.registry, &native.Options{Blobs: stored{w.blobs}}); err != nil {
		w.tb.Fatal(err)
	}
	w.Hand = hand.New(hand.Deps{
		Tools: tools.NewCatalogue(w.registry, nil), Log: w.log, Blobs: w.blobs, Reducer: step.NewReducer(nil),
		Engine: w.engine, Writer: w.writer, Workspaces: w.folders,
	}, &o)
}

// stop ends what start built.
func (w *world) stop() {
	w.tb.Helper()
	if err := w.Close(context.Background()); err != nil {
		w.tb.Error(err)
	}
	if err := w.writer.Close(); err != nil {
		w.tb.Error(err)
	}
}

func (w *world) put(name, content string) {
	w.tb.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.tb.Fatal(err)
	}
}

// add puts a tool into the registry.
func (w *world) add(d tools.Descriptor, run tools.Func) {
	w.tb.Helper()
	d.Level = tools.LevelFunction
	if err := w.registry.Add(d, run); err != nil {
		w.tb.Fatal(err)
	}
}

// request is a call of the test's agent.
func request(name string, args map[string]any) hand.Request {
	if args == nil {
		args = map[string]any{}
	}
	text, err := json.Marshal(args)
	if err != nil {
		panic(err) // arguments of tests are JSON
	}
	return hand.Request{Scope: agent, Name: name, Args: text}
}

// must makes a call that has to be recorded, successful or not.
func (w *world) must(req hand.Request) hand.Answer {
	w.tb.Helper()
	a, err := w.Call(w.tb.Context(), req)
	if err != nil {
		w.tb.Fatalf("%s: %v", req.Name, err)
	}
	if !a.Recorded || a.Step == nil || a.RecordError != nil {
		w.tb.Fatalf("%s: not recorded: %+v", req.Name, a)
	}
	return a
}

// steps returns the agent's steps of a session.
func (w *world) steps(sessionID string) []step.Step {
	w.tb.Helper()
	entries, err := w.log.Steps(context.Background(), agent, sessionID, 0, 0)
	if err != nil {
		w.tb.Fatal(err)
	}
	var list []step.Step
	for _, e := range entries {
		list = append(list, *e.Step)
	}
	return list
}

// intents returns the intents that stand in the log.
func (w *world) intents() []session.Intent {
	w.tb.Helper()
	var list []session.Intent
	for in, err := range w.log.Intents(context.Background()) {
		if err != nil {
			w.tb.Fatal(err)
		}
		list = append(list, in)
	}
	return list
}

// content returns the bytes of the blob that a name leads to.
func (w *world) content(name string) string {
	w.tb.Helper()
	e, err := w.blobs.Lookup(context.Background(), agent, name)
	if err != nil {
		w.tb.Fatalf("look up %s: %v", name, err)
	}
	var b strings.Builder
	for piece, err := range w.blobs.Read(context.Background(), agent, e, 0, -1) {
		if err != nil {
			w.tb.Fatalf("read %s: %v", name, err)
		}
		b.Write(piece)
	}
	return b.String()
}

// field returns a value of a JSON object.
func field(tb testing.TB, object json.RawMessage, name string) any {
	tb.Helper()
	var values map[string]any
	if err := json.Unmarshal(object, &values); err != nil {
		tb.Fatalf("%s: %v", object, err)
	}
	return values[name]
}
