package history

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Act is one call of a tool with what it gave, as a preset shows it.
type Act struct {
	step.Step
	// Ref names it where it is no step of the log, such as "message_017". Empty is
	// the step's own id.
	Ref string

	// summary is its line, once it was made.
	summary string
}

// ID is what the act is called by.
func (a Act) ID() string { return cmp.Or(a.Ref, a.Step.ID()) }

// Compactor applies a preset. It has no state; all methods are safe for
// concurrent use if the counter is.
type Compactor struct {
	count  func(text string) int
	preset Preset
	reader string
}

// NewCompactor returns a compactor that counts with count.
func NewCompactor(count func(text string) int, p Preset) *Compactor {
	return &Compactor{count: count, preset: p.WithDefaults(), reader: step.ToolReadFile}
}

// ReadBy returns the compactor for models that know fs:read_file by another name.
func (c Compactor) ReadBy(reader string) *Compactor {
	c.reader = reader
	return &c
}

// Full is a step in full: what was thought, done and seen.
func (c *Compactor) Full(s step.Step) string {
	text, result := c.bare(s), s.Output()
	if c.preset.Results == ResultsOmit && !s.Pinned {
		return text
	}
	if result != "" && !c.Hides(s) && !repeats(s, result) {
		text += "\n" + marked(result)
	}
	return text
}

// heads begin the lines that only a history of steps as text has.
var heads = regexp.MustCompile(`(?m)^(Step \d+:|Thought: |Action: |Observation: |(?:Recent|Previous|Earlier) (?:steps|actions)|Earlier: |(?:Current )?Goal: )`)

// marked is what a tool said, with a mark before each line that would look like a step of
// the history, or like the goal.
func marked(result string) string { return heads.ReplaceAllString(result, "| $1") }

// bare is a step in full without its result.
func (c *Compactor) bare(s step.Step) string {
	var b strings.Builder
	b.WriteString("Step " + strconv.FormatUint(s.Number, 10) + ":\n")
	if s.Thought != "" {
		b.WriteString("Thought: " + s.Thought + "\n")
	}
	args, _ := text.DecodeJSON(s.MinimalArgs)
	if args == nil {
		args = map[string]any{}
	}
	b.WriteString(`Action: {"tool": ` + string(text.SpacedJSON(s.ToolName)) + `, "args": ` + string(text.SpacedJSON(args)) + "}\n")
	if c.preset.Results == ResultsOmit && !s.Pinned {
		return strings.TrimSuffix(b.String(), "\n")
	}
	first, rest, more := strings.Cut(c.Observed(s), "\n")
	b.WriteString("Observation: " + first)
	if more {
		b.WriteString("\n" + marked(rest))
	}
	return b.String()
}

// Observed returns the observation of a result, with the reference of the whole.
func (c *Compactor) Observed(s step.Step) string {
	return s.ToObservationBy(c.preset.Reference, c.reader)
}

// Hides reports whether a step in full leaves its result to its reference.
func (c *Compactor) Hides(s step.Step) bool {
	return c.preset.Results == ResultsObservation && s.NeedsOffload() && !s.Pinned &&
		(!c.preset.ShowReads || s.ToolName != step.ToolReadFile)
}

// Result is what stands for the result of an act where that is a message of its
// own. whole is the result as a prompt shows it with nothing folded; it stays where
// nothing shorter stands for it. bare leaves out results that the preset shows, too,
// so that a prompt fits.
func (c *Compactor) Result(a *Act, whole string, bare bool) string {
	text := whole
	switch {
	case a.Pinned:
	case c.Hides(a.Step), bare && a.NeedsOffload():
		text = c.Observed(a.Step)
	case bare:
		text = a.Observation + "\nFull text: " + c.reader + " " + a.ID()
	}
	if text != whole && c.count(text) < c.count(whole) {
		return text
	}
	return whole
}

// repeats reports whether the observation is the whole result, on one line.
func repeats(s step.Step, result string) bool {
	_, said, found := strings.Cut(s.Observation, " → ")
	return found && said == text.OneLine(result)
}

// line returns a step as one line. If a custom template's line is no shorter than the whole
// step, the call as it was made is used instead.
func (c *Compactor) line(s step.Step) string {
	line := c.preset.Templates.Compact(s).Summary
	if c.preset.Templates.Owns(s.ToolName) && c.count(line) >= c.count(c.Full(s)) {
		return step.Called(s).Summary
	}
	return line
}

// lineOf is the line of an act.
func (c *Compactor) lineOf(a *Act) string {
	if a.summary == "" {
		a.summary = c.line(a.Step)
	}
	return a.summary
}

// Render renders steps as one text, with the first older ones as lines, but for
// pinned ones, which stay in full. Without older steps only their full forms stand
// there.
func (c *Compactor) Render(steps []step.Step, older int) string {
	acts := make([]Act, len(steps))
	for i := range steps {
		acts[i].Step = steps[i]
	}
	lines, full := split(acts, older)
	var parts []string
	if len(lines) > 0 {
		parts = append(parts, c.sections([][]Act{lines}, len(steps), 0)...)
	}
	if len(full) > 0 {
		parts = append(parts, c.recent(full, len(lines) > 0))
	}
	return strings.Join(parts, "\n\n")
}

// recent are acts in full as one text, under the heading that stands there.
func (c *Compactor) recent(acts []Act, behindOlder bool) string {
	texts := make([]string, len(acts))
	for i := range acts {
		texts[i] = c.fullText(&acts[i], false)
	}
	return c.heading(behindOlder) + strings.Join(texts, c.between())
}

// heading begins the first of some acts in full.
func (c *Compactor) heading(behindOlder bool) string {
	switch {
	case c.preset.Style == StyleGrouped:
		return "Recent actions:\n"
	case !behindOlder:
		return ""
	case c.preset.Style == StyleDesign:
		return "Recent steps:\n"
	}
	return "Recent steps:\n\n"
}

// between stands between acts in full.
func (c *Compactor) between() string {
	if c.preset.Style == StyleGrouped {
		return "\n"
	}
	return "\n\n"
}

// fullText is an act in full, without its result if it is to be bare.
func (c *Compactor) fullText(a *Act, bare bool) string {
	switch {
	case c.preset.Style == StyleGrouped:
		return c.action(a)
	case bare && !a.Pinned:
		return c.bare(a.Step)
	}
	return c.Full(a.Step)
}

// sections are the texts of runs of older acts: a heading and a line for each, or
// what the style leaves of them. Where they stand in one conversation, their
// limits hold for all together. all is how many acts there are in all, and the
// oldest omit of the older ones have no lines, those first that are not protected.
func (c *Compactor) sections(runs [][]Act, all, omit int) []string {
	out := c.omitted(runs, omit)
	switch c.preset.Style {
	case StyleDesign:
		return c.each(runs, func(at int, run []Act) string { return c.listed("Previous steps:", "  • ", run, out[at:]) })
	case StyleGrouped:
		return c.groupedSections(runs, all, out)
	}
	return c.earlier(runs, omit, out)
}

// each makes the text of each run; at is how many acts stand in those before.
func (c *Compactor) each(runs [][]Act, text func(at int, run []Act) string) []string {
	texts, at := make([]string, len(runs)), 0
	for i, run := range runs {
		texts[i] = text(at, run)
		at += len(run)
	}
	return texts
}

// listed is a heading and a line for each act that is not left out.
func (c *Compactor) listed(heading, bullet string, run []Act, out []bool) string {
	var b strings.Builder
	dropped := 0
	for i := range run {
		if out[i] {
			dropped++
			continue
		}
		b.WriteString("\n" + bullet + c.lineOf(&run[i]))
	}
	if dropped > 0 {
		heading += "\n" + bullet + "(" + strconv.Itoa(dropped) + " earlier steps omitted)"
	}
	return heading + b.String()
}

// earlier are the sections of StyleReduction: a line for each act, or only how
// many they are where that is over its tokens.
func (c *Compactor) earlier(runs [][]Act, omit int, out []bool) []string {
	const heading, bullet = "Earlier steps:", "• "
	texts := c.each(runs, func(_ int, run []Act) string { return c.listed(heading, bullet, run, make([]bool, len(run))) })
	if omit == 0 && c.total(texts) <= c.preset.SectionTokens {
		return texts
	}
	return c.counted(runs, out)
}

// counted replaces each run by the number of its acts, and shows the protected ones.
func (c *Compactor) counted(runs [][]Act, out []bool) []string {
	kept := make([]bool, len(out))
	for _, i := range c.protected(slices.Concat(runs...)) {
		kept[i] = !out[i]
	}
	return c.each(runs, func(at int, run []Act) string {
		var b strings.Builder
		n := 0
		for i := range run {
			if !kept[at+i] {
				n++
				continue
			}
			b.WriteString("\n• " + c.lineOf(&run[i]))
		}
		return "Earlier: " + strconv.Itoa(n) + " steps completed" + b.String()
	})
}

func (c *Compactor) total(texts []string) int {
	return sum(texts, func(text *string) int { return c.count(*text) })
}

// omitted says of each older act whether it is among the n left out: oldest first,
// protected acts last.
func (c *Compactor) omitted(runs [][]Act, n int) []bool {
	acts := slices.Concat(runs...)
	out := make([]bool, len(acts))
	if n == 0 {
		return out
	}
	last := make([]bool, len(acts))
	for _, i := range c.protected(acts) {
		last[i] = true
	}
	for _, protected := range []bool{false, true} {
		for i := range acts {
			if n > 0 && last[i] == protected {
				out[i] = true
				n--
			}
		}
	}
	return out
}

// protected are the places of the newest failures among acts, in order: as many of
// the last ones as the preset protects.
func (c *Compactor) protected(acts []Act) []int {
	var failed []int
	for i := range slices.Backward(acts) {
		if len(failed) == ProtectLast {
			break
		}
		if acts[i].Outcome == step.Failed {
			failed = append(failed, i)
		}
	}
	slices.Reverse(failed)
	return failed
}

// split parts acts at a boundary: those shown as lines, and those in full. Pinned
// ones stay in full, wherever they stand.
func split(acts []Act, older int) (lines, full []Act) {
	older = min(max(older, 0), len(acts))
	for i := range acts {
		if i < older && !acts[i].Pinned {
			lines = append(lines, acts[i])
		} else {
			full = append(full, acts[i])
		}
	}
	return lines, full
}
