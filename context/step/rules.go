package step

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// ErrRules: a table of rules can't be used; the text says which key is wrong.
var ErrRules = errors.New("step: bad rules")

// The presets of offloading: from which size a result goes into a blob.
const (
	// OffloadReduction is what the built-in rules say.
	OffloadReduction = "reduction"
	// OffloadDesign has one threshold for all tools: 1000 bytes.
	OffloadDesign = "design"
	// OffloadCompressor has one threshold for all tools: over 1500 characters.
	OffloadCompressor = "compressor"
)

// otherTools is the table of all tools that have none.
const otherTools = "*"

// maxRuleText bounds a text of a rule: longer is no line.
const maxRuleText = 1 << 10

//go:embed rules.toml
var builtinTOML []byte

// Rules say how the calls of each tool are kept. They are read from TOML, one
// table for each tool; the built-in table says which keys there are. Rules never
// change; the zero value has no rules and stands for the built-in ones.
type Rules struct {
	tables map[string]table
	byTool map[string]*rule  // by the name with _ for the colon
	names  map[string]string // tools by their names without a colon
}

// table is one table of the file. What it leaves out comes from the one it is
// laid over.
type table struct {
	Shape       *string   `toml:"shape"`
	Args        *[]string `toml:"args"`
	Observation *string   `toml:"observation"`
	Design      *string   `toml:"design"`
	Empty       *string   `toml:"empty"`
	Offload     *string   `toml:"offload"`
	FromBytes   *int64    `toml:"from_bytes"`
	FromChars   *int64    `toml:"from_chars"`
	FromLines   *int64    `toml:"from_lines"`
	FromItems   *int64    `toml:"from_items"`
	Kind        *string   `toml:"kind"`
	Ext         *string   `toml:"ext"`
	Category    *string   `toml:"category"`
	Keep        *string   `toml:"keep"`
	Compact     *string   `toml:"compact"`
	Hide        *bool     `toml:"hide"`
}

// rule is how one tool's calls are reduced.
type rule struct {
	shape shape
	// args are the arguments that stay; nil is all of them, in short.
	args                       []string
	observation, design, empty template
	offload                    string
	from                       thresholds
	kind, ext, category, keep  string
	// compact is the line of an older step, nil where the templates have it.
	compact template
	// hide keeps a result that was offloaded out of prompts.
	hide bool
}

// What of a result goes into a blob.
const (
	offloadText   = "text"
	offloadResult = "result"
	offloadNever  = "never"
)

var loadBuiltin = sync.OnceValues(func() (Rules, error) { return Rules{}.With(builtinTOML) })

// BuiltinRules returns the rules that come with the package.
func BuiltinRules() Rules {
	rules, err := loadBuiltin()
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return rules
}

// With returns the rules with a file's rules replacing theirs. An unknown key, a
// placeholder that the tool's results lack, or a value out of range gives ErrRules.
func (r Rules) With(file []byte) (Rules, error) {
	var all struct {
		Tools map[string]table `toml:"tools"`
	}
	decoder := toml.NewDecoder(bytes.NewReader(file)).DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return Rules{}, fmt.Errorf("%w: %s", ErrRules, tomlProblem(err))
	}
	tables := maps.Clone(r.tables)
	if tables == nil {
		tables = make(map[string]table, len(all.Tools))
	}
	for name, t := range all.Tools {
		tables[name] = t.over(tables[name])
	}
	return compile(tables)
}

// WithOffload returns the rules with the thresholds of one of the presets of
// offloading; none is OffloadReduction. What is never offloaded stays so.
func (r Rules) WithOffload(preset string) (Rules, error) {
	var from table
	switch preset {
	case "", OffloadReduction:
		return r, nil
	case OffloadDesign:
		from.FromBytes = new(int64(1000))
	case OffloadCompressor:
		from.FromChars = new(int64(1501))
	default:
		return Rules{}, fmt.Errorf("%w: there is no preset of offloading %q", ErrRules, preset)
	}
	tables := make(map[string]table, len(r.tables))
	for name, t := range r.tables {
		tables[name] = from.over(t)
	}
	return compile(tables)
}

func compile(tables map[string]table) (Rules, error) {
	rules := Rules{tables: tables, byTool: make(map[string]*rule, len(tables)), names: make(map[string]string, len(tables))}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		made, err := tables[name].over(tables[otherTools]).rule(name)
		if err != nil {
			return Rules{}, fmt.Errorf("%w: tools.%q: %w", ErrRules, name, err)
		}
		rules.byTool[ruleName(name)] = made
		rules.names[ruleName(name)] = name
	}
	for _, name := range []string{ToolReadFile, ToolWriteFile, ToolListDir} {
		_, short, _ := strings.Cut(name, ":")
		rules.names[short] = name
	}
	for name := range tables {
		delete(rules.names, name) // it is a tool's own name
	}
	return rules, nil
}

// ToolName is the tool that a name without a colon means: that of a rule with _ for
// the colon, and read_file, write_file and list_dir. Any other name, and one that
// has a rule itself, means itself.
func (r Rules) ToolName(name string) string { return cmp.Or(r.names[name], name) }

func ruleName(tool string) string { return strings.ReplaceAll(tool, ":", "_") }

// find returns the rule of a tool.
func (r Rules) find(tool string) *rule {
	if found, ok := r.byTool[ruleName(tool)]; ok {
		return found
	}
	return r.byTool[otherTools]
}

// over lays t over another table.
func (t table) over(under table) table {
	// One of another shape offloads otherwise: the thresholds below it mean nothing to it.
	reshaped := t.Shape != nil && t.Offload != nil
	if t.FromBytes == nil && t.FromChars == nil && t.FromLines == nil && t.FromItems == nil && !reshaped {
		t.FromBytes, t.FromChars, t.FromLines, t.FromItems = under.FromBytes, under.FromChars, under.FromLines, under.FromItems
	}
	for _, f := range []struct{ to, from **string }{
		{&t.Shape, &under.Shape},
		{&t.Observation, &under.Observation},
		{&t.Design, &under.Design},
		{&t.Empty, &under.Empty},
		{&t.Offload, &under.Offload},
		{&t.Kind, &under.Kind},
		{&t.Ext, &under.Ext},
		{&t.Category, &under.Category},
		{&t.Keep, &under.Keep},
		{&t.Compact, &under.Compact},
	} {
		if *f.to == nil {
			*f.to = *f.from
		}
	}
	t.Args = cmp.Or(t.Args, under.Args)
	t.Hide = cmp.Or(t.Hide, under.Hide)
	return t
}

// tomlProblem says what is wrong with a file and where.
func tomlProblem(err error) string {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		first := &unknown.Errors[0]
		line, _ := first.Position()
		return fmt.Sprintf("line %d: unknown key %s", line, strings.Join(first.Key(), "."))
	}
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := bad.Position()
		return fmt.Sprintf("line %d, column %d: %s", line, column, bad.Error())
	}
	return err.Error()
}
