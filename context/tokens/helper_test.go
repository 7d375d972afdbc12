package tokens_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// models has one model for each encoding.
var models = map[tokens.Encoding]string{
	tokens.O200K: "gpt-4o", tokens.CL100K: "gpt-4", tokens.P50K: "text-davinci-003", tokens.R50K: "gpt2",
}

func MustCounter(tb testing.TB, opts *tokens.Options) *tokens.Counter {
	tb.Helper()
	c, err := tokens.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func MustCount(tb testing.TB, c *tokens.Counter, model, text string) tokens.Count {
	tb.Helper()
	n, err := c.Count(model, text)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// oracles are the library, each encoding loaded once for all tests, from
// memory instead of the network.
var oracles = sync.OnceValues(func() (map[tokens.Encoding]*tiktoken.Tiktoken, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	found := make(map[tokens.Encoding]*tiktoken.Tiktoken)
	for encoding := range models {
		oracle, err := tiktoken.GetEncoding(string(encoding))
		if err != nil {
			return nil, err
		}
		found[encoding] = oracle
	}
	return found, nil
})

// MustOracle counts texts with the library. It takes quadratic time for a run
// of characters that it can't split.
func MustOracle(tb testing.TB, encoding tokens.Encoding) func(text string) int {
	tb.Helper()
	found, err := oracles()
	if err != nil {
		tb.Fatal(err)
	}
	return func(text string) int { return len(found[encoding].EncodeOrdinary(text)) }
}

// cpuTime is what the processor spends on some work: other programs on the
// machine don't spoil it.
func cpuTime(tb testing.TB, work func()) time.Duration {
	tb.Helper()
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			tb.Fatal(err)
		}
		// Only the sum of both is exact.
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	started := used()
	work()
	return used() - started
}

// underRace reports whether the race detector watches, which takes ten times as
// long, and most where the counter is fastest.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// message is one message of a recorded run.
type message struct {
	Role      string  `json:"role"`
	Content   string  `json:"content"`
	RawOutput *string `json:"raw_output"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
	Usage  *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

// MustRuns reads a file of recorded runs. Without LOOM_EVAL_DATA, which names
// the folder they are in, the test is skipped.
func MustRuns(tb testing.TB, name string) [][]message {
	tb.Helper()
	folder := os.Getenv("LOOM_EVAL_DATA")
	if folder == "" {
		tb.Skip("needs recorded runs: set LOOM_EVAL_DATA to their folder")
	}
	file, err := os.Open(filepath.Join(folder, "trajectories", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var found [][]message
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var run struct {
			Messages []message `json:"messages"`
		}
		if err := json.Unmarshal(lines.Bytes(), &run); err != nil {
			tb.Fatal(err)
		}
		found = append(found, run.Messages)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return found
}

// MustTexts returns all texts of the recorded runs.
func MustTexts(tb testing.TB) []string {
	tb.Helper()
	var found []string
	for _, name := range []string{"mini_swe_dev.jsonl", "tau_dev.jsonl", "swe_agent_demos.jsonl"} {
		for _, run := range MustRuns(tb, name) {
			for _, m := range run {
				found = append(found, m.Content)
				if m.RawOutput != nil {
					found = append(found, *m.RawOutput)
				}
				for _, call := range m.ToolCalls {
					found = append(found, call.Function.Arguments)
				}
			}
		}
	}
	return found
}
