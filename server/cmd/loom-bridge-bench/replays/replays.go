// Package replays is the command that replays recorded runs of agents under history policies.
package replays

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replay"
)

const replayHelp = `Replay recorded runs of agents under history policies, and tell what each would
have sent, what that would have cost, and what the prompts would still have
shown. Nothing is stored and no model is called.

FILE holds JSON, one value a line or laid out over many; - is the standard
input. It may hold

  - runs: objects with messages, as OpenAI or Anthropic write them. Tool results
    may carry raw_output (the whole output) and returncode;
  - requests: such objects, bare or within request, body, params and the like. A
    request that goes on where an earlier one ended belongs to the same run; an
    answer logged beside it (response, choices) is its end;
  - messages: a list of them, or one a line. One file is then one run, or one for
    each session_id.

Results are paired with calls by their ids and, where these repeat or are
missing, by their place. In runs without tool calls whose assistant writes
actions as text, the user message behind an action is its result. An action is
the last fenced block of a message, what follows "Action:", what stands in a tag
such as <command> or <function=name> with its parameters, or a whole message of
JSON with a name and arguments. At least three quarters of a run's answers have to
hold one; how many runs have none is said on standard error.

Policies (default: all of these, side by side):

  append_only            everything, always: the baseline of all ratios
  dedupe                 the same without lines that the prompt shows already
  sliding_mask[:N]       only the last N results (10)
  clear_tool_uses[:N]    over N tokens (8000), all results but 3 taken out for good
  design_literal, design_sticky, reduction_literal, reduction_sticky
                         presets, with a boundary that moves with every step, or in
                         batches; also chat, research, code and debug
  ledger                 what the server does by default
  ledger_rehydrated      the same, and at the end of a prompt the lines of folded
                         results that the newest call or message takes up

Columns, and keys of --json:

  sent, cost             thousands of tokens, and of units of one input token
  tokens_ratio, cost_ratio, worst_run_cost_ratio
                         to append_only, over all runs, and of the worst run
  busts_per_step         share of prompts that do not begin with the one before
  stable_share           share of tokens that were a prefix of the prompt before
  peak_p50, peak_max     largest prompts of the runs: median and maximum
  identifiers_visible    of the names in each next call that had stood in the run,
                         the share that the prompt shows; _tool_only: of those
                         that only results had shown
  fault_rate             share of calls with a name that only results had shown and
                         the prompt does not: what was folded away is asked for
  repeat_rate            share of calls that were made before, word for word, and
                         whose result is folded; the recorded agent made them
                         although it saw everything
  rehydrated_tokens      what folded lines that came back take in a prompt, on average
  survival               of what was folded by the last step, the share of paths,
                         commands, numbers with units and error lines that the
                         prompt shows
                         All three are "-", and null in JSON, where there was
                         nothing to measure

The recorded agent does not react to what it would have been shown: the figures
say what was there to be seen, not how the run would have ended.`

const replayExample = `  loom-bridge-bench context runs.jsonl
  loom-bridge-bench context --policy ledger,append_only --model gpt-4o --json *.jsonl
  loom-bridge-bench context --prices 0.1,1.25,1 --budget 16000 requests.jsonl
  zcat log.gz | loom-bridge-bench context -`

// replaySettings are the flags of context.
type replaySettings struct {
	policies []string
	budget   int
	prices   string
	model    string
	models   string
	json     bool
}

// Command replays recorded runs under history policies.
func Command(stdout, stderr io.Writer) *cobra.Command {
	var s replaySettings
	command := &cobra.Command{
		Use:     "context FILE...",
		Short:   "Replay recorded runs under history policies: tokens, cost, evidence",
		Long:    replayHelp,
		Example: replayExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("give at least one file of recorded runs, or - for the standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			return replayRuns(cmd.Context(), s, files, cmd.InOrStdin(), stdout, stderr)
		},
	}
	f := command.Flags()
	f.SortFlags = false
	f.StringSliceVar(&s.policies, "policy", nil, "`names` of policies, with commas between or given again (default: the table's policies)")
	f.IntVar(&s.budget, "budget", replay.DefaultBudget, "most `tokens` that a prompt of the ledger may take; 0 for no bound")
	f.StringVar(&s.prices, "prices", "", "`read,write,input`: what a token costs that is read from the provider's cache, written there, sent without (default 0.1,1.25,1)")
	f.StringVar(&s.model, "model", "", "take prices and counter of this `model`; --prices is stronger (default: o200k)")
	f.StringVar(&s.models, "models", "", "TOML `file` of models, laid over the built-in ones")
	f.BoolVar(&s.json, "json", false, "print one JSON object a line for each policy")
	return command
}

func replayRuns(ctx context.Context, s replaySettings, files []string, stdin io.Reader, stdout, stderr io.Writer) error {
	measure, err := s.meter()
	if err != nil {
		return err
	}
	policies, err := s.choose(measure.prices)
	if err != nil {
		return err
	}
	runs, err := readRuns(files, stdin)
	if err != nil {
		return err
	}
	steps, silent := 0, 0
	for i := range runs {
		steps += runs[i].Steps()
		if runs[i].Acts() == 0 {
			silent++
		}
	}
	if silent > 0 {
		fmt.Fprintf(stderr, "%d of %d runs have no tool calls, and in under three quarters of their answers an action that is known: presets fold nothing there, and no identifiers are measured\n",
			silent, len(runs))
	}
	watch := progress{to: stderr, total: len(runs), last: time.Now()}
	bench := replay.Bench{Count: measure.count, Prices: measure.prices, Replayed: watch.replayed}
	rows, err := bench.Run(ctx, runs, policies)
	if err != nil {
		return fmt.Errorf("context: %w", err)
	}
	for _, r := range rows {
		if r.Over > 0 {
			fmt.Fprintf(stderr, "%s: %d prompts do not fit into %d tokens, whatever is folded; they were measured as if there were no budget\n",
				r.Policy, r.Over, s.budget)
		}
	}
	if s.json {
		return writeJSON(stdout, rows)
	}
	p := measure.prices
	if _, err := fmt.Fprintf(stdout, "%d runs, %d steps; tokens of %s; prices: cached %g, written %g, sent %g; budget of the ledger %d\n\n",
		len(runs), steps, measure.counter, p.CachedInput, p.CacheWrite, p.Input, s.budget); err != nil {
		return err
	}
	return replay.WriteTable(stdout, rows)
}

// choose returns the policies that were asked for.
func (s replaySettings) choose(prices history.Prices) ([]replay.Policy, error) {
	if s.budget < 0 {
		return nil, fmt.Errorf("--budget %d: must not be negative; 0 is no bound", s.budget)
	}
	settings := replay.Settings{Budget: s.budget, Prices: prices}
	names := s.policies
	if len(names) == 0 || slices.Contains(names, "all") {
		return replay.Policies(settings), nil
	}
	var chosen []replay.Policy
	for _, name := range names {
		p, ok := replay.Named(strings.TrimSpace(name), settings)
		if !ok {
			return nil, fmt.Errorf("--policy %q: unknown; nearest is %q, see --help", name, text.Nearest(name, replay.Names()))
		}
		chosen = append(chosen, p)
	}
	return chosen, nil
}

// meter is how tokens are counted and what they cost.
type meter struct {
	count   func(string) int
	counter string
	prices  history.Prices
}

func (s replaySettings) meter() (meter, error) {
	models, err := tokens.LoadModels(s.models)
	if err != nil {
		return meter{}, fmt.Errorf("--models %q: %w", s.models, err)
	}
	counter, err := tokens.New(&tokens.Options{Models: models})
	if err != nil {
		return meter{}, err
	}
	count, err := counter.Count(s.model, "")
	if err != nil {
		return meter{}, err
	}
	m := meter{counter: count.Counter, prices: history.DefaultPrices()}
	m.count = func(text string) int { return countLong(counter, s.model, text) }
	if !count.Exact {
		m.counter += " (estimated)"
	}
	if s.prices != "" {
		m.prices, err = pricesOf(s.prices)
		return m, err
	}
	if s.model != "" {
		price := counter.Model(s.model).Price
		if price.CacheRead == 0 && price.CacheWrite == 0 {
			return meter{}, fmt.Errorf("--model %q: its prices are not known; give --prices, or --models with a table of them", s.model)
		}
		m.prices = history.Prices{Input: 1, CachedInput: price.CacheRead, CacheWrite: price.CacheWrite}
	}
	return m, nil
}

// pricesOf reads "read,write,input".
func pricesOf(text string) (history.Prices, error) {
	var values []float64
	for part := range strings.SplitSeq(text, ",") {
		value, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(value >= 0 && value < math.MaxInt32) {
			return history.Prices{}, fmt.Errorf("--prices %q: %q is no price", text, part)
		}
		values = append(values, value)
	}
	if len(values) != 3 {
		return history.Prices{}, fmt.Errorf("--prices %q: %d numbers, must be three: read,write,input", text, len(values))
	}
	if values[2] == 0 {
		return history.Prices{}, fmt.Errorf("--prices %q: the input price must be above 0", text)
	}
	return history.Prices{CachedInput: values[0], CacheWrite: values[1], Input: values[2]}, nil
}

// countLong counts a text of any length: one too long for the counter is counted in parts,
// each up to the end of a line where there is one.
func countLong(counter *tokens.Counter, model, text string) int {
	n := 0
	for text != "" {
		part := text
		if len(part) > tokens.MaxTextBytes {
			part = part[:tokens.MaxTextBytes]
			if end := strings.LastIndexByte(part, '\n'); end > 0 {
				part = part[:end]
			}
		}
		// A part is never too large, and nothing else can go wrong.
		if c, err := counter.Count(model, part); err == nil {
			n += c.Tokens
		}
		text = text[len(part):]
	}
	return n
}

// readRuns reads the runs of all files.
func readRuns(files []string, stdin io.Reader) ([]replay.Run, error) {
	var all []replay.Run
	for _, name := range files {
		runs, err := readFile(name, stdin)
		if bad, ok := errors.AsType[*replay.LineError](err); ok {
			return nil, fmt.Errorf("%s:%d: %w", name, bad.Line, bad.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(runs) == 0 {
			return nil, fmt.Errorf("%s: no recorded run in it", name)
		}
		all = append(all, runs...)
	}
	return all, nil
}

func readFile(name string, stdin io.Reader) ([]replay.Run, error) {
	if name == "-" {
		return replay.Read(stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	return replay.Read(f)
}

func writeJSON(w io.Writer, rows []replay.Measured) error {
	lines := json.NewEncoder(w)
	for _, r := range rows {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// progressEvery is how often long work says how far it is.
const progressEvery = 2 * time.Second

// progress says how far the replay is.
type progress struct {
	to    io.Writer
	total int
	last  time.Time
}

func (p *progress) replayed(runs int) {
	if now := time.Now(); now.Sub(p.last) >= progressEvery {
		p.last = now
		fmt.Fprintf(p.to, "replayed %d of %d runs\n", runs, p.total)
	}
}
