package history

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
)

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

// earlier are the sections of StyleReduction: a line for each act, or what the
// fallback leaves of them where they are over their tokens.
func (c *Compactor) earlier(runs [][]Act, omit int, out []bool) []string {
	const heading, bullet = "Earlier steps:", "• "
	listed := func(out []bool) []string {
		return c.each(runs, func(at int, run []Act) string { return c.listed(heading, bullet, run, out[at:]) })
	}
	texts := listed(make([]bool, len(out)))
	if omit == 0 && c.total(texts) <= c.preset.SectionTokens {
		return texts
	}
	if c.preset.Fallback == FallbackCount {
		return c.counted(runs, out)
	}
	// With each act that is left out there is less, but for the line that says so.
	free := len(out) - len(c.protected(slices.Concat(runs...)))
	if omit == 0 && free == 0 {
		return texts
	}
	least := max(omit, 1)
	left := least + sort.Search(max(free-least, 0), func(more int) bool {
		return c.total(listed(c.omitted(runs, least+more))) <= c.preset.SectionTokens
	})
	return listed(c.omitted(runs, left))
}

// counted says of each run how many acts there were, and shows those that are
// protected.
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
	n := 0
	for _, text := range texts {
		n += c.count(text)
	}
	return n
}

// omitted says of each older act whether it is among the n that are left out: the
// oldest first, but those that are protected last.
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
		if len(failed) == c.preset.ProtectLast {
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
