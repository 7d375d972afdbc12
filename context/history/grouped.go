package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// groupedHeading begins the older part of a grouped history.
const groupedHeading = "Previous actions (summarized):"

// group is consecutive older acts of one category.
type group struct {
	category string
	acts     []Act
}

// category is what steps are grouped by.
func category(tool string) string {
	switch tool {
	case "fs:read_file", "fs:write_file", "fs:list_dir", "fs:delete":
		return "file"
	case "system:shell", "python:run_script":
		return "shell"
	case "web:search", "fs:search":
		return "search"
	case "browser:navigate":
		return "web"
	}
	return tool
}

// action returns an act in full: its sign and its observation. A pinned one shows its
// result, too.
func (c *Compactor) action(a *Act) string {
	sign := "✓"
	if !a.Success() {
		sign = "✗"
	}
	text := "  [" + a.ID() + "] " + sign + " " + c.Observed(a.Step)
	if a.Pinned && a.Inline != "" {
		text += "\n" + a.Inline
	}
	return text
}

// groupedSections are the sections of StyleGrouped. The limit of lines is that of
// all together; out are acts without any, failures among them, too.
func (c *Compactor) groupedSections(runs [][]Act, all int, out []bool) []string {
	limit := c.preset.GroupLines
	if limit == 0 {
		limit = DefaultGroupLines
		if all > manySteps {
			limit = manyGroupLines
		}
	}
	if allFailed(slices.Concat(runs...)) {
		limit = len(out)
	}
	texts, end := make([]string, len(runs)), len(out)
	for i, run := range slices.Backward(runs) {
		end -= len(run)
		texts[i], limit = c.groupedSection(run, out[end:end+len(run)], limit)
	}
	return texts
}

// groupedSection is the text of one run with at most limit lines of groups, and
// how many of them are left for older ones.
func (c *Compactor) groupedSection(run []Act, out []bool, limit int) (text string, left int) {
	groups := c.groups(run)
	dropped, left := c.keptFrom(groups, limit)
	lines := []string{groupedHeading}
	omitted, at := 0, 0
	for i, g := range groups {
		gone := !slices.Contains(out[at:at+len(g.acts)], false)
		line := c.groupLine(g)
		if i >= dropped && !gone && line != "" {
			lines = append(lines, "  "+line)
		}
		for k := range g.acts {
			failed := g.acts[k].Outcome == step.Failed
			if failed && !out[at+k] {
				lines = append(lines, "  ["+g.acts[k].ID()+"] ✗ "+failure(&g.acts[k]))
			} else if failed || i < dropped || gone {
				omitted++
			}
		}
		at += len(g.acts)
	}
	if omitted > 0 {
		lines = append(lines, fmt.Sprintf("  ... (%d earlier steps omitted)", omitted))
	}
	return strings.Join(lines, "\n"), left
}

// failure says how an act failed: a command that said nothing, by its exit code.
func failure(a *Act) string {
	said := text.OneLine(a.Error)
	if code, ok := a.Exit(); ok && said == "" {
		said = fmt.Sprint("exit ", code)
	}
	return strings.TrimSuffix(a.ToolName+" failed: "+said, ": ")
}

// keptFrom returns the first of the newest groups that have limit lines in all,
// and how many lines are left.
func (c *Compactor) keptFrom(groups []group, limit int) (from, left int) {
	for i := len(groups) - 1; i >= 0; i-- {
		if c.groupLine(groups[i]) == "" {
			continue
		}
		if limit == 0 {
			return i + 1, 0
		}
		limit--
	}
	return 0, limit
}

// groups puts neighbours of one category together. If all failed, each stands
// alone.
func (c *Compactor) groups(acts []Act) []group {
	var groups []group
	single := c.preset.NoGroups || allFailed(acts)
	for _, a := range acts {
		name := category(a.ToolName)
		last := len(groups) - 1
		if single || last < 0 || groups[last].category != name {
			groups = append(groups, group{category: name})
			last++
		}
		groups[last].acts = append(groups[last].acts, a)
	}
	return groups
}

func allFailed(acts []Act) bool {
	return !slices.ContainsFunc(acts, func(a Act) bool { return a.Outcome != step.Failed })
}

// groupLine is the line of a group; a single failed step has none, because its
// failure has one.
func (c *Compactor) groupLine(g group) string {
	first, n := &g.acts[0], len(g.acts)
	if n == 1 {
		if first.Outcome == step.Failed {
			return ""
		}
		return "[" + first.ID() + "] " + c.lineOf(first)
	}
	failed := 0
	for _, a := range g.acts {
		if a.Outcome == step.Failed {
			failed++
		}
	}
	last := strings.TrimPrefix(g.acts[n-1].ID(), "step_")
	line := "[" + first.ID() + ".." + last + "] " + g.what()
	if failed > 0 {
		line += fmt.Sprintf(" (%d failed)", failed)
	}
	return line
}

// what says what the acts of a group did.
func (g group) what() string {
	n := len(g.acts)
	switch g.category {
	case "file":
		return fmt.Sprintf("%d file operations (%s total)", n, text.HumanSize(g.sum("size", "bytes")))
	case "shell":
		return fmt.Sprintf("%d commands executed", n)
	case "search":
		return fmt.Sprintf("%d searches (%d results)", n, g.sum("count"))
	}
	return fmt.Sprintf("%dx %s", n, g.category)
}

// sum adds up, over the acts, the first figure that each of them has.
func (g group) sum(names ...string) int64 {
	var total int64
	for _, a := range g.acts {
		for _, name := range names {
			if n, ok := a.Figure(name); ok {
				total += n
				break
			}
		}
	}
	return total
}
