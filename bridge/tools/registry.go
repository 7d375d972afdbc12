package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// DefaultMaxTools bounds a registry: each tool costs prompt text and memory.
const DefaultMaxTools = 4096

// Options of a registry. The zero value is the default.
type Options struct {
	// MaxTools bounds how many tools can be added. Default DefaultMaxTools.
	MaxTools int
	// Levels overrides the levels in the descriptors of some tools, by registered name.
	Levels map[string]int
}

// Registry holds tools by name. All methods are safe for concurrent use.
type Registry struct {
	limit  int
	levels map[string]int

	mu      sync.RWMutex
	tools   map[string]*Tool  // guarded by mu
	aliases map[string]string // guarded by mu; alias to registered name
}

// Tool is one tool of a registry. It never changes and may be used by many
// goroutines at once.
type Tool struct {
	descriptor Descriptor
	schema     *jsonschema.Schema // nil for a tool that is run elsewhere
	run        Func
	preview    Preview // nil for one whose arguments say it all
}

// NewRegistry returns an empty registry. Nil options are the defaults.
func NewRegistry(opts *Options) *Registry {
	r := &Registry{limit: DefaultMaxTools, tools: map[string]*Tool{}, aliases: map[string]string{}}
	if opts != nil {
		r.levels = maps.Clone(opts.Levels)
		if opts.MaxTools > 0 {
			r.limit = opts.MaxTools
		}
	}
	return r
}

// shortNames are the file tools' names as models know them from elsewhere.
var shortNames = map[string]string{
	"fs:read_file":  "read_file",
	"fs:write_file": "write_file",
	"fs:list_dir":   "list_dir",
}

// Add puts a tool into the registry. It compiles the schema, once. An
// unacceptable descriptor is a *DescriptorError, a taken name ErrToolExists, a
// full registry ErrTooManyTools; the registry is then unchanged.
func (r *Registry) Add(d Descriptor, run Func) error { return r.AddShown(d, run, nil) }

// AddShown is Add for a tool that shows what a call of it will do.
func (r *Registry) AddShown(d Descriptor, run Func, preview Preview) error {
	if level, ok := r.levels[d.Name]; ok {
		d.Level = level
	}
	t, err := New(d, run)
	if err != nil {
		return err
	}
	t.preview = preview
	return r.put(t)
}

// New returns a tool that belongs to no registry, under the rules of
// Registry.Add.
func New(d Descriptor, run Func) (*Tool, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if len(d.Schema) == 0 {
		d.Schema = anyObject
	}
	schema, err := compile(d.Schema)
	if err != nil {
		return nil, d.problem("schema", err.Error())
	}
	d.Schema = bytes.Clone(d.Schema)
	return &Tool{descriptor: d, schema: schema, run: run}, nil
}

// NewRemote is New for a tool that is run elsewhere, where its arguments are checked:
// whatever its schema says, even when it is no JSON Schema, Tool.Check lets them through.
func NewRemote(d Descriptor, run Func) (*Tool, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if len(d.Schema) == 0 {
		d.Schema = anyObject
	}
	d.Schema = bytes.Clone(d.Schema)
	return &Tool{descriptor: d, run: run}, nil
}

// CheckLevels returns a *NotFoundError for the first name of Options.Levels that no tool
// was added under, or nil.
func (r *Registry) CheckLevels() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(r.levels)) {
		if _, ok := r.tools[name]; !ok {
			return r.notFound(name)
		}
	}
	return nil
}

func (r *Registry) put(t *Tool) error {
	name := t.descriptor.Name
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.tools[name]; taken {
		return fmt.Errorf("%w: %s", ErrToolExists, name)
	}
	if len(r.tools) >= r.limit {
		return fmt.Errorf("%w: limit is %d", ErrTooManyTools, r.limit)
	}
	r.tools[name] = t
	r.addAlias(strings.ReplaceAll(name, ":", "_"), name)
	if short, ok := shortNames[name]; ok {
		r.addAlias(short, name)
	}
	return nil
}

// Alias gives a tool that is there a further name, which lists do not show. A tool
// that is added under that name wins over it. The first alias of a name stays: one
// that means another tool is ErrToolExists, a missing tool a *NotFoundError.
func (r *Registry) Alias(alias, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.tools[name]; !ok {
		return r.notFound(name)
	}
	if r.addAlias(alias, name); r.aliases[alias] != name {
		return fmt.Errorf("%w: %s", ErrToolExists, alias)
	}
	return nil
}

// addAlias keeps the first tool of an alias, so that adding another one never
// changes what an alias means.
func (r *Registry) addAlias(alias, name string) {
	if _, taken := r.aliases[alias]; !taken && alias != name {
		r.aliases[alias] = name
	}
}

// Lookup returns the tool of that name. A name registered exactly so wins;
// otherwise "_" may stand for ":", and read_file, write_file and list_dir mean
// the fs tools. An unknown name is a *NotFoundError.
func (r *Registry) Lookup(name string) (*Tool, error) {
	if t, ok := r.Find(name); ok {
		return t, nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return nil, r.notFound(name)
}

func (r *Registry) notFound(name string) error {
	return &NotFoundError{Name: text.Cut(name, MaxNameBytes, text.Dots), Nearest: nearest(name, maps.Keys(r.tools))}
}

// Find is Lookup for callers that need no error, which takes longer to make.
func (r *Registry) Find(name string) (*Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tools[name]
	if !ok {
		t, ok = r.tools[r.aliases[name]]
	}
	return t, ok
}

// List returns the descriptors of the given levels, or of all, by name.
func (r *Registry) List(levels ...int) []Descriptor {
	r.mu.RLock()
	list := make([]Descriptor, 0, len(r.tools))
	for _, t := range r.tools {
		if len(levels) == 0 || slices.Contains(levels, t.descriptor.Level) {
			list = append(list, t.descriptor)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(list, func(a, b Descriptor) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Descriptor returns what the tool was added with.
func (t *Tool) Descriptor() Descriptor { return t.descriptor }

// Remote reports whether the tool is run elsewhere, such as by an agent.
func (t *Tool) Remote() bool { return t.schema == nil }

// Check compares args with the tool's schema and returns an *ArgumentsError
// that lists all violations. It changes args first: members that are null are
// removed, since they count as missing, and a text becomes the number, the boolean, the list
// or the object that it is where the schema wants one and no text. Members the schema does not
// name are let through unless it forbids them: see CheckNames.
//
// Of a tool that is run elsewhere only the texts are changed, and nothing is refused.
func (t *Tool) Check(args map[string]any) error {
	if t.Remote() {
		t.fit(args)
		return nil
	}
	dropNulls(t.schema, args)
	coerce(t.schema, args)
	dropNulls(t.schema, args) // a text may have said it
	if list := violations(t.schema, args); len(list) > 0 {
		return t.Refuse(list...)
	}
	return nil
}

// CheckNames returns an *ArgumentsError that lists the members of args which the schema does
// not name, at any depth; nil where it leaves room for them, and for a tool that is run
// elsewhere.
func (t *Tool) CheckNames(args map[string]any) error {
	if t.Remote() {
		return nil
	}
	if list := unknown(nil, t.schema, args); len(list) > 0 {
		return t.Refuse(list...)
	}
	return nil
}

// fit is coerce for a tool that is run elsewhere. Its schema is compiled only where a text may
// stand for something else, as lookups make such a tool anew for each call.
func (t *Tool) fit(args map[string]any) {
	if !holdsText(args) {
		return
	}
	if shape := text.ShapeOf(t.descriptor.Schema); shape.Depth > MaxSchemaDepth || shape.Values > MaxSchemaValues {
		return
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseRegexpEngine(anyPattern)
	if schema, err := compileWith(compiler, t.descriptor.Schema); err == nil {
		coerce(schema, args)
	}
}

// Refuse returns the error that says what is wrong with a call's arguments.
func (t *Tool) Refuse(list ...Violation) *ArgumentsError {
	return &ArgumentsError{Tool: t.descriptor.Name, Violations: list, Schema: t.Schema()}
}

// Schema returns the JSON Schema of the arguments. Do not change it.
func (t *Tool) Schema() json.RawMessage { return t.descriptor.Schema }

// Preview returns what a call will use in addition to its arguments, as it is now.
func (t *Tool) Preview(ctx context.Context, c Input) ([]PreviewPart, error) {
	if t.preview == nil {
		return nil, nil
	}
	return t.preview(ctx, c)
}

// Run runs the tool on checked arguments, on the caller's goroutine.
func (t *Tool) Run(ctx context.Context, c Input) (Output, error) { return t.run(ctx, c) }
