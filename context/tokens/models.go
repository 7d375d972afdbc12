package tokens

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// DefaultModel is the model an empty name stands for.
const DefaultModel = "gpt-4o"

// The counters: the rule by which a model's prompt is counted.
const (
	// OpenAI counts with a vocabulary, and a frame of 3 tokens for each message.
	OpenAI = "openai"
	// Anthropic counts with a near vocabulary and a ratio, and a frame of 3.
	Anthropic = "anthropic"
	// Estimate is for models whose vocabulary is not known: by the scripts of a
	// text, or with another's vocabulary and a ratio that makes it an upper
	// estimate, whichever is more; and a frame of 4.
	Estimate = "estimate"
)

// Model describes a model. It is read from a table of TOML; zero is
// unknown.
type Model struct {
	// Family is the longest name in the table that the model goes by.
	Family string
	// Counter is OpenAI, Anthropic or Estimate.
	Counter string
	// Encoding is the vocabulary that texts are counted with.
	Encoding Encoding
	// Exact says that Encoding is the model's own.
	Exact bool
	// Ratio is how many tokens of the model one counted token is, before any
	// usage was reported.
	Ratio float64
	// Window is the largest prompt and answer together, in tokens.
	Window int
	// Reserve is what of the window is kept for the answer. Where the table
	// has none it is a quarter of the window.
	Reserve int
	// ToolPrompt is what the provider adds once when there are tools.
	ToolPrompt int
	// FunctionTokens is the frame of each tool.
	FunctionTokens int
	// CacheMinimum is the fewest tokens that the provider's cache keeps.
	CacheMinimum int
	// Image says what images cost.
	Image ImageRule
	// Price says what tokens cost.
	Price Price
}

// Price is the list price of a model.
type Price struct {
	// Input and Output are dollars for a million tokens; zero is unknown.
	Input  float64 `toml:"input"`
	Output float64 `toml:"output"`
	// CacheRead and CacheWrite are what input costs that was, or is to be, kept
	// in the provider's cache, as fractions of the input price.
	CacheRead  float64 `toml:"cache_read"`
	CacheWrite float64 `toml:"cache_write"`
}

// entry is one table of the file. What it leaves out comes from the next
// shorter name that fits.
type entry struct {
	Counter        *string    `toml:"counter"`
	Encoding       *Encoding  `toml:"encoding"`
	Exact          *bool      `toml:"exact"`
	Ratio          *float64   `toml:"ratio"`
	Window         *int       `toml:"window"`
	Reserve        *int       `toml:"reserve"`
	ToolPrompt     *int       `toml:"tool_prompt"`
	FunctionTokens *int       `toml:"function_tokens"`
	CacheMinimum   *int       `toml:"cache_minimum"`
	Image          *ImageRule `toml:"image"`
	Price          *Price     `toml:"price"`
}

// Limits of a table and of names.
const (
	// maxRatio is far above any tokenizer's; a larger one is a slip.
	maxRatio = 10
	// maxWindow keeps sums of tokens within 32 bits.
	maxWindow = 1 << 30
	// maxFound is how many names are kept resolved; they come from requests.
	maxFound = 1 << 10
	// maxNameBytes is the longest name that is kept resolved.
	maxNameBytes = 256
)

// Models knows models by their names. It never changes; all methods are safe
// for concurrent use.
type Models struct {
	// layers are the tables, the built-in one first.
	layers []map[string]entry
	names  []string // of all layers, the shortest first

	mu    sync.RWMutex // guards found
	found map[string]*Model
}

//go:embed models.toml
var builtinTOML []byte

// BuiltinModels returns the table that comes with the package.
func BuiltinModels() (*Models, error) { return new(Models).With(builtinTOML) }

// LoadModels lays the user's table in a file over the built-in one; without a path
// nil, which means that one alone.
func LoadModels(path string) (*Models, error) {
	if path == "" {
		return nil, nil
	}
	models, err := BuiltinModels()
	if err != nil {
		return nil, err
	}
	table, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return models.With(table)
}

// With returns the models with a user's table laid over them: TOML with a table
// models."name" for each model or family, as in the built-in one. A field given
// there replaces that of the same name here, and names may be new. A key that
// is not known, or a value out of range, is an error.
func (m *Models) With(table []byte) (*Models, error) {
	var file struct {
		Models map[string]entry `toml:"models"`
	}
	decoder := toml.NewDecoder(bytes.NewReader(table)).DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("tokens: models: %w", err)
	}
	layers := append(slices.Clone(m.layers), map[string]entry{})
	own := layers[len(layers)-1]
	names := slices.Clone(m.names)
	for _, name := range slices.Sorted(maps.Keys(file.Models)) {
		e := file.Models[name]
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("tokens: models.%q: %w", name, err)
		}
		name = strings.ToLower(name)
		own[name] = e
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return len(a) - len(b) })
	return &Models{layers: layers, names: names, found: make(map[string]*Model)}, nil
}

// Find returns the entry of a model. Names may carry a provider
// ("openai/gpt-4o", "anthropic.claude-3-haiku") or a fine-tune
// ("ft:gpt-4o:acme"). An empty name is DefaultModel. A model that no name of the
// table fits is counted by Estimate.
func (m *Models) Find(name string) Model { return *m.find(name) }

// find keeps what it resolved. The model belongs to the table.
func (m *Models) find(name string) *Model {
	m.mu.RLock()
	found := m.found[name]
	m.mu.RUnlock()
	if found != nil {
		return found
	}
	found = m.resolve(plainName(name))
	if len(name) > maxNameBytes {
		return found
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.found) >= maxFound {
		clear(m.found)
	}
	m.found[strings.Clone(name)] = found
	return found
}

func (m *Models) resolve(name string) *Model {
	model := &Model{Counter: Estimate, Ratio: 1}
	for _, family := range m.names {
		if !inFamily(name, family) {
			continue
		}
		model.Family = family
		for _, layer := range m.layers {
			if e, ok := layer[family]; ok {
				e.apply(model)
			}
		}
	}
	model.Exact = model.Exact && model.Counter != Estimate
	model.Reserve = cmp.Or(model.Reserve, model.Window/4)
	return model
}

// plainName returns a model's name without what providers put around it.
func plainName(name string) string {
	name = cmp.Or(name, DefaultModel)
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	if _, after, ok := strings.Cut(name, "anthropic."); ok {
		name = after
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "ft:"), ":")
	return name
}

// inFamily accepts the family's name itself, and with a dash or an at sign and
// more behind it. A family that ends with a star accepts whatever begins with
// it. "gpt-4.1" is not in the family "gpt-4", which has another vocabulary.
func inFamily(name, family string) bool {
	if start, ok := strings.CutSuffix(family, "*"); ok {
		return strings.HasPrefix(name, start)
	}
	rest, ok := strings.CutPrefix(name, family)
	return ok && (rest == "" || rest[0] == '-' || rest[0] == '@')
}

func (e entry) apply(m *Model) {
	set(&m.Counter, e.Counter)
	if e.Encoding != nil { // a ratio is that of one vocabulary
		m.Encoding, m.Ratio = *e.Encoding, 1
	}
	set(&m.Exact, e.Exact)
	set(&m.Ratio, e.Ratio)
	set(&m.Window, e.Window)
	set(&m.Reserve, e.Reserve)
	set(&m.ToolPrompt, e.ToolPrompt)
	set(&m.FunctionTokens, e.FunctionTokens)
	set(&m.CacheMinimum, e.CacheMinimum)
	set(&m.Image, e.Image)
	set(&m.Price, e.Price)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// check returns what is wrong with the values of an entry.
func (e entry) check() error {
	if e.Counter != nil && *e.Counter != OpenAI && *e.Counter != Anthropic && *e.Counter != Estimate {
		return fmt.Errorf("counter %q is not openai, anthropic or estimate", *e.Counter)
	}
	if e.Encoding != nil && engines[*e.Encoding] == nil {
		return fmt.Errorf("encoding %q is unknown", *e.Encoding)
	}
	if e.Ratio != nil && !(*e.Ratio > 0 && *e.Ratio <= maxRatio) {
		return fmt.Errorf("ratio %v is not above 0 and at most %d", *e.Ratio, maxRatio)
	}
	for name, n := range map[string]*int{
		"window": e.Window, "reserve": e.Reserve, "tool_prompt": e.ToolPrompt, "function_tokens": e.FunctionTokens,
		"cache_minimum": e.CacheMinimum,
	} {
		if n != nil && (*n < 0 || *n > maxWindow) {
			return fmt.Errorf("%s %d is not between 0 and %d", name, *n, maxWindow)
		}
	}
	if e.Price != nil {
		for _, p := range []float64{e.Price.Input, e.Price.Output, e.Price.CacheRead, e.Price.CacheWrite} {
			if !(p >= 0 && p < math.MaxInt32) {
				return fmt.Errorf("price %v is negative or too large", p)
			}
		}
	}
	if e.Image != nil {
		return e.Image.check()
	}
	return nil
}

// count is n tokens as the model's counter counts them.
func (m *Model) count(n int) Count {
	c := Count{Tokens: n, Counter: m.Counter, Exact: m.Exact && m.Ratio == 1}
	if m.Counter == OpenAI {
		c.Counter = string(m.Encoding)
	}
	return c
}
