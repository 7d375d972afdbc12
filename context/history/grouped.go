package history

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// Frame of a grouped history.
const (
	groupedHeading = "Previous actions (summarized):"
	recentHeading  = "Recent actions:"
)

// group is consecutive older steps of one category.
type group struct {
	category string
	steps    []step.Step
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

// grouped lays out the older steps in lines of groups, with a line for each
// failure, and the recent ones with their observations. A pinned one shows its
// result, too.
func (c *Compactor) grouped(older, recent []step.Step) string {
	var parts []string
	if len(older) > 0 {
		parts = append(parts, c.groupedSection(older, len(older)+len(recent)))
	}
	if len(recent) > 0 {
		lines := []string{recentHeading}
		for _, s := range recent {
			sign := "✓"
			if !s.Success() {
				sign = "✗"
			}
			lines = append(lines, "  ["+s.ID()+"] "+sign+" "+s.ToObservation(c.preset.Reference))
			if s.Pinned && s.Inline != "" {
				lines = append(lines, s.Inline)
			}
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	return strings.Join(parts, "\n\n")
}

func (c *Compactor) groupedSection(older []step.Step, all int) string {
	groups := c.groups(older)
	limit := c.preset.GroupLines
	if limit == 0 {
		limit = DefaultGroupLines
		if all > manySteps {
			limit = manyGroupLines
		}
	}
	if allFailed(older) {
		limit = len(groups)
	}
	dropped := c.keptFrom(groups, limit)
	lines := []string{groupedHeading}
	omitted := 0
	for i, g := range groups {
		if i < dropped {
			omitted += len(g.steps)
		} else if line := c.groupLine(g); line != "" {
			lines = append(lines, "  "+line)
		}
		for _, s := range g.steps {
			if s.Outcome == step.Failed {
				lines = append(lines, "  ["+s.ID()+"] ✗ "+s.ToolName+" failed: "+step.OneLine(s.Error))
				if i < dropped {
					omitted--
				}
			}
		}
	}
	if omitted > 0 {
		lines = append(lines, fmt.Sprintf("  ... (%d earlier steps omitted)", omitted))
	}
	return strings.Join(lines, "\n")
}

// keptFrom returns the first of the newest groups that have limit lines in all.
func (c *Compactor) keptFrom(groups []group, limit int) int {
	for i := len(groups) - 1; i >= 0; i-- {
		if c.groupLine(groups[i]) == "" {
			continue
		}
		if limit--; limit < 0 {
			return i + 1
		}
	}
	return 0
}

// groups puts neighbours of one category together. If all failed, each stands
// alone.
func (c *Compactor) groups(steps []step.Step) []group {
	var groups []group
	single := c.preset.NoGroups || allFailed(steps)
	for _, s := range steps {
		name := category(s.ToolName)
		last := len(groups) - 1
		if single || last < 0 || groups[last].category != name {
			groups = append(groups, group{category: name})
			last++
		}
		groups[last].steps = append(groups[last].steps, s)
	}
	return groups
}

func allFailed(steps []step.Step) bool {
	for _, s := range steps {
		if s.Outcome != step.Failed {
			return false
		}
	}
	return true
}

// groupLine is the line of a group; a single failed step has none, because its
// failure has one.
func (c *Compactor) groupLine(g group) string {
	first, n := g.steps[0], len(g.steps)
	if n == 1 {
		if first.Outcome == step.Failed {
			return ""
		}
		return "[" + first.ID() + "] " + c.line(first)
	}
	failed := 0
	for _, s := range g.steps {
		if s.Outcome == step.Failed {
			failed++
		}
	}
	last := strings.TrimPrefix(g.steps[n-1].ID(), "step_")
	line := "[" + first.ID() + ".." + last + "] " + g.what()
	if failed > 0 {
		line += fmt.Sprintf(" (%d failed)", failed)
	}
	return line
}

// what says what the steps of a group did.
func (g group) what() string {
	n := len(g.steps)
	switch g.category {
	case "file":
		return fmt.Sprintf("%d file operations (%s total)", n, step.HumanSize(g.sum("size", "bytes")))
	case "shell":
		return fmt.Sprintf("%d commands executed", n)
	case "search":
		return fmt.Sprintf("%d searches (%d results)", n, g.sum("count"))
	}
	return fmt.Sprintf("%dx %s", n, g.category)
}

// sum adds up, over the steps, the first figure that each of them has.
func (g group) sum(names ...string) int64 {
	var total int64
	for _, s := range g.steps {
		for _, name := range names {
			if n, ok := s.Figure(name); ok {
				total += n
				break
			}
		}
	}
	return total
}
