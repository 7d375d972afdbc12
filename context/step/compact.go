package step

import "github.com/loom-bridge/loom-bridge/context/text"

// CompactStep is a step in one line.
type CompactStep struct {
	// ID is the step's id.
	ID string
	// Summary is the line, such as "Read config.json (1.2KB)".
	Summary string
}

// Cuts of compact lines, in characters.
const (
	compactErrorChars = 100
	compactArgsChars  = 200
)

// Compact returns a step's line under its id. It is pure: the same step gives
// the same line, whatever came before. A failed step says how it failed, except
// that of a shell command, whose exit code does.
func (t Templates) Compact(s Step) CompactStep {
	return CompactStep{ID: s.ID(), Summary: text.OneLine(t.summary(s))}
}

func (t Templates) summary(s Step) string {
	if s.Outcome == Failed && s.ToolName != ToolShell {
		line, _ := text.OneLineHead("✗ "+s.ToolName+" failed: "+s.Error, compactErrorChars)
		return line
	}
	v := valuesOf(s)
	if line, ok := t.byTool[ruleName(s.ToolName)]; ok && s.Outcome != Unknown {
		if body, complete := v.fill(line); complete {
			return body
		}
	}
	return v.called()
}

// Called is the line of a step without a template: the call as it was made.
func Called(s Step) CompactStep {
	v := valuesOf(s)
	return CompactStep{ID: s.ID(), Summary: text.OneLine(v.called())}
}
