package server

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/observe"
)

// domainPackages are those whose errors handlers can meet. Engines wrap the
// errors of kv.
var domainPackages = []string{
	"../memory", "../memory/filter", "../memory/kv", "../memory/vector", "../context/session", "../context/blob", "../context/step", "../context/tokens",
	"../context/history", "../context/compress", "../context/assemble", "../bridge/tools", "../bridge/native", "../bridge/hand", "../bridge/events", "../bridge/agents", ".", "auth", "validate",
}

// faults are sentinels without a row: met by a call they are faults of the
// server, and INTERNAL is the right answer.
var faults = map[string]string{
	"auth.ErrCredentials":     "found at start, not by a call",
	"auth.ErrTLS":             "found at start, not by a call",
	"memory.ErrDamaged":       "stored data can't be read",
	"memory.ErrNewer":         "stored data can't be read",
	"memory.ErrOutdated":      "found by a check, not by a call",
	"memory.ErrChanging":      "found by a check, not by a call",
	"memory.ErrNotRemembered": "prompts search then, no call meets it",
	"memory.ErrMismatch":      "found by a check, not by a call",
	"kv.ErrUnguarded":         "a mistake in this program",
	"kv.ErrBadKey":            "stored data can't be read",
	"kv.ErrLocked":            "met at start only",
	"kv.ErrForeign":           "met at start only",
	"kv.ErrNewer":             "met at start only",
	"kv.ErrUnfinished":        "met at start only",
	"kv.ErrOccupied":          "what migrate fails with",
	"kv.ErrReadOnly":          "the server opens its store for writing",
	"vector.ErrDamaged":       "stored data can't be read",
	"vector.ErrNewer":         "stored data can't be read",
	"session.ErrDamaged":      "stored data can't be read",
	"session.ErrIntentTaken":  "the hand waits for the other's answer, and gives that",
	"session.ErrNewer":        "stored data can't be read",
	"history.ErrOverflow":     "what assembling wraps in an error of its own",
	"history.ErrDamaged":      "stored data can't be read",
	"history.ErrTemplate":     "met at start only",
	"step.ErrRules":           "met at start only",
	"step.ErrDamaged":         "stored data can't be read",
	"blob.ErrClosed":          "a mistake in this program",
	"events.ErrDamaged":       "stored data can't be read",
	"agents.ErrNotFound":      "what a relayed tool fails with, and part of an OK answer",
	"agents.ErrNotConnected":  "what a relayed tool fails with, and part of an OK answer",
	"agents.ErrDamaged":       "stored data can't be read",
	"hand.ErrNoWorkspace":     "the operator has to see to it",
	"tools.ErrBadDescriptor":  "met at start only",
	"native.ErrNotOwned":      "what a tool fails with, and part of an OK answer",
	"tools.ErrToolExists":     "met at start only",
	"tools.ErrTooManyTools":   "met at start only",
	"server.ErrOpenToAll":     "met at start only",
}

// Every exported sentinel of a domain package has a row, or a reason to have
// none.
func TestEverySentinelHasARow(t *testing.T) {
	rows, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range domainPackages {
		for _, name := range sentinels(t, dir) {
			inTable := strings.Contains(string(rows), "{"+strings.TrimPrefix(name, "server.")+", ")
			if _, excused := faults[name]; inTable == excused {
				t.Errorf("%s: row %v, excused %v", name, inTable, excused)
			}
		}
	}
}

// sentinels returns "package.ErrX" for each exported error variable.
func sentinels(tb testing.TB, dir string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("%s: no files (%v)", dir, err)
	}
	var names []string
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range errorVars(file) {
			names = append(names, path.Join(file.Name.Name)+"."+name)
		}
	}
	return names
}

func errorVars(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if strings.HasPrefix(name.Name, "Err") {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// Every row is found through wrapping, and its reason is a real one.
func TestRowsAreReached(t *testing.T) {
	seen := map[error]bool{}
	for _, row := range errorTable() {
		if seen[row.is] {
			t.Errorf("%v has two rows", row.is)
		}
		seen[row.is] = true
		got := classify(t.Context(), fmt.Errorf("operation: %w", row.is))
		if got.code != row.code || got.reason != row.reason {
			t.Errorf("%v became %v %v", row.is, got.code, got.reason)
		}
		if name := observe.ReasonName(row.reason); name == "" || name == "UNSPECIFIED" || loombridgev1.ErrorReason_value["ERROR_REASON_"+name] == 0 {
			t.Errorf("%v has the reason %q", row.is, name)
		}
		if row.code == codes.OK || row.code == codes.Unknown {
			t.Errorf("%v has the code %v", row.is, row.code)
		}
	}
}

func TestClassify(t *testing.T) {
	stopping, cancel := context.WithCancelCause(t.Context())
	cancel(ErrShuttingDown)
	for _, test := range []struct {
		name   string
		ctx    context.Context
		err    error
		code   codes.Code
		reason string
	}{
		{"unknown", t.Context(), errors.New("boom"), codes.Internal, "INTERNAL"},
		{"full queue", t.Context(), &kv.LimitError{What: "queue", Limit: 1}, codes.Unavailable, "OVERLOADED"},
		{"large value", t.Context(), &kv.LimitError{What: "value", Limit: 1}, codes.ResourceExhausted, "TOO_LARGE"},
		{"damaged blob", t.Context(), &blob.DamagedError{Ref: "x"}, codes.DataLoss, "BLOB_DAMAGED"},
		{"reserved topic", t.Context(), &topics.ReservedError{Topic: "execute"}, codes.InvalidArgument, "RESERVED_TOPIC"},
		{"cancelled", t.Context(), context.Canceled, codes.Canceled, "CANCELLED"},
		{"cancelled by the shutdown", stopping, context.Canceled, codes.Unavailable, "SHUTTING_DOWN"},
		{"deadline around a store error", t.Context(), errors.Join(kv.ErrClosed, context.DeadlineExceeded), codes.DeadlineExceeded, "DEADLINE_EXCEEDED"},
	} {
		row := classify(test.ctx, test.err)
		if row.code != test.code || observe.ReasonName(row.reason) != test.reason {
			t.Errorf("%s: %v %v", test.name, row.code, row.reason)
		}
	}
}

// A status that gRPC's own services made keeps its code.
func TestStatusesPass(t *testing.T) {
	given := status.Error(codes.NotFound, "unknown service")
	if got := failureOf(t.Context(), given); status.Code(got) != codes.NotFound {
		t.Errorf("got %v", got)
	}
}
