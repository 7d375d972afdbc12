package tools

import (
	"iter"
	"slices"
	"strings"
)

// Supplier has tools that are run elsewhere, such as by agents. Its methods are safe for
// concurrent use.
type Supplier interface {
	// Find returns the tool that callers of a tenant reach by exactly that name, one
	// whose provider is away included: its call says so.
	Find(tenant, name string) (*Tool, bool)
	// Offers yields the tools that callers of a tenant can call now, by name.
	Offers(tenant string) iter.Seq[Offer]
}

// Offer is a tool that can be called.
type Offer struct {
	Descriptor
	// AgentID is who runs it; empty for a tool of the server.
	AgentID string
	// Given is the schema as that agent wrote it, whatever it is, and Metadata the
	// agent's own pairs.
	Given    string
	Metadata map[string]string
	// Tokens is what it takes in a prompt; 0 where that is not counted.
	Tokens int
}

// CategoryMCP is that of tools of servers of the Model Context Protocol.
const CategoryMCP = "mcp"

// Foreign reports whether others than the server say what the tool is called, and what it does.
func (o Offer) Foreign() bool { return o.AgentID != "" || o.Category == CategoryMCP }

// NameForm returns how model providers write the name of a tool, and whether they accept it
// at all.
type NameForm func(name string) (written string, taken bool)

// CatalogueOptions adjusts a Catalogue. The zero value is the default.
type CatalogueOptions struct {
	// Form is how models call tools: of two names with one form only one can be had.
	// Default: by their names.
	Form NameForm
	// Absent returns a tool that answers in the place of a missing one, or nil. No list
	// shows it. Default: no such tool.
	Absent func(name string) *Tool
}

// Catalogue resolves and lists tools: the tools of the server's registry, which win, and
// the tools of suppliers. All methods but Add are safe for concurrent use.
type Catalogue struct {
	registry  *Registry
	form      NameForm
	absent    func(name string) *Tool
	suppliers []Supplier
}

// NewCatalogue returns a catalogue of a registry alone. Nil options are the defaults.
func NewCatalogue(r *Registry, opts *CatalogueOptions) *Catalogue {
	c := &Catalogue{
		registry: r,
		form:     func(name string) (string, bool) { return name, true },
		absent:   func(string) *Tool { return nil },
	}
	if opts != nil && opts.Form != nil {
		c.form = opts.Form
	}
	if opts != nil && opts.Absent != nil {
		c.absent = opts.Absent
	}
	return c
}

// Add puts the tools of a supplier behind the existing ones. Call it before any other use
// of the catalogue.
func (c *Catalogue) Add(s Supplier) { c.suppliers = append(c.suppliers, s) }

// Own returns the tool of the server that a name or an alias means.
func (c *Catalogue) Own(name string) (*Tool, bool) { return c.registry.Find(name) }

// CountOwn is how many tools the server has.
func (c *Catalogue) CountOwn() int { return len(c.registry.List()) }

// Find returns the tool that a name means for callers of a tenant: one of the server, by
// its name or an alias, else one of a supplier, else what answers for a tool that is not
// here.
func (c *Catalogue) Find(tenant, name string) (*Tool, bool) {
	if t, ok := c.registry.Find(name); ok {
		return t, true
	}
	for _, s := range c.suppliers {
		if t, ok := s.Find(tenant, name); ok {
			return t, true
		}
	}
	t := c.absent(name)
	return t, t != nil
}

// Lookup is Find with an error: an unknown name is a *NotFoundError, which has the
// nearest name of the server's tools.
func (c *Catalogue) Lookup(tenant, name string) (*Tool, error) {
	if t, ok := c.Find(tenant, name); ok {
		return t, nil
	}
	return c.registry.Lookup(name)
}

// All yields the tools of the server, then the suppliers' tools whose name no earlier tool
// has.
func (c *Catalogue) All(tenant string) iter.Seq[Offer] {
	return func(yield func(Offer) bool) {
		for _, d := range c.registry.List() {
			if !yield(Offer{Descriptor: d}) {
				return
			}
		}
		for i, s := range c.suppliers {
			for o := range s.Offers(tenant) {
				if !c.before(tenant, o.Name, i) && !yield(o) {
					return
				}
			}
		}
	}
}

// before reports whether the server, or one of the first suppliers, has a tool of exactly
// that name.
func (c *Catalogue) before(tenant, name string, suppliers int) bool {
	if t, ok := c.registry.Find(name); ok && t.descriptor.Name == name {
		return true
	}
	return slices.ContainsFunc(c.suppliers[:suppliers], func(s Supplier) bool {
		_, ok := s.Find(tenant, name)
		return ok
	})
}

// usualOffers is about how many tools a server has itself.
const usualOffers = 32

// List returns the tools of some levels, or of all, that callers of a tenant reach by the
// name they have, those behind a name only, sorted by name. A supplier's tool is left out
// if its name is too long or means one of the server.
func (c *Catalogue) List(tenant, after string, levels ...int) []Offer {
	list := make([]Offer, 0, usualOffers)
	for o := range c.All(tenant) {
		if o.Name <= after || len(levels) > 0 && !slices.Contains(levels, o.Level) {
			continue
		}
		if o.Foreign() {
			if _, own := c.registry.Find(o.Name); own || len(o.Name) > MaxNameBytes {
				continue
			}
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Offer) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Offered is the List of what prompts may offer. Of a tool of an agent or of another server that models would call
// by the name of another one, the other one stays, and one whose name the form does not
// take is left out: it would break the prompt.
func (c *Catalogue) Offered(tenant string, form NameForm) []Offer {
	list := c.List(tenant, "")
	names := make(map[string]bool, len(list))
	for _, o := range list {
		if !o.Foreign() {
			name, _ := form(o.Name)
			names[name] = true
		}
	}
	return slices.DeleteFunc(list, func(o Offer) bool {
		if !o.Foreign() {
			return false
		}
		name, taken := form(o.Name)
		out := !taken || names[name]
		names[name] = true
		return out
	})
}

// Called is what models call a tool of that name.
func (c *Catalogue) Called(name string) string {
	called, _ := c.form(name)
	return called
}

// Takes reports whether a supplier may have a tool of that name: to callers and to models
// it means none of the server.
func (c *Catalogue) Takes(name string) bool {
	_, own := c.registry.Find(name)
	if !own {
		_, own = c.registry.Find(c.Called(name))
	}
	return !own
}
