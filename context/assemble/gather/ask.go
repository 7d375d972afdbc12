package gather

import (
	"context"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Ask is what a prompt wants to know. Sources don't change it.
type Ask struct {
	// Scope is the prompt's agent, SessionID the session, and Settings.UserID a person
	// whose memories the prompt may also hold.
	Scope     kv.Scope
	SessionID string
	// Goal is what the agent works towards, Newest the newest message of the user. Both
	// may be empty. Before and Answer are what was said before the newest message, which it
	// may refer to: the user's own message, and the answer to it.
	Goal, Newest, Before, Answer string
	// Layout is that of the prompt.
	Layout settings.Layout
	// Settings are the prompt's settings.
	Settings settings.Prompt
	// TaskType is what sort of task it is, for playbooks that say which they are for;
	// empty is any.
	TaskType string
	// View is the moment of the prompt. Required.
	View kv.Reader
	// Now is its time.
	Now time.Time
	// Count counts the tokens of a text. Required.
	Count func(text string) int
	// KeepOnWrite lets blocks stay for their time although a record that they show was
	// changed.
	KeepOnWrite bool
	// DryRun says that nothing may be written.
	DryRun bool
	// Shown are the items of the source's own block that stands since an earlier prompt;
	// the gatherer sets it.
	Shown []Item
}

// Source is where a prompt finds something. All methods are safe for concurrent use.
type Source interface {
	// Name is that of the section that it fills, as settings and receipts have it.
	Name() string
	// Collect returns what it has. It ends soon after ctx does. An error leaves the
	// source out of the prompt; kv.ErrTooOld has the whole prompt made anew.
	Collect(ctx context.Context, a *Ask) (Found, error)
}

// Timed is a Source that a prompt does not wait for at any price.
type Timed interface {
	// Timeout is how long a prompt waits.
	Timeout(a *Ask) time.Duration
}

// Remembering is a Source that may have its answer without looking for it.
type Remembering interface {
	// Remembered is Collect from the cache, so fast that the prompt need not run it
	// concurrently; false if it would have to search.
	Remembered(ctx context.Context, a *Ask) (found Found, known bool, err error)
}

// Optional is a Source that settings exclude otherwise than by its name.
type Optional interface {
	// Excluded reports whether prompts with these settings leave it out.
	Excluded(p *settings.Prompt) bool
}

// Found is what a source has for a prompt. The zero value is nothing.
type Found struct {
	// Injections are as they are; none of them is kept.
	Injections []inject.Injection
	// Block is what is kept for its time; nil is none.
	Block *Block
	// Skills are the agent's skills in addition to the declared ones.
	Skills []settings.Skill
	// Refs name what Injections show, such as ids of records.
	Refs []string
	// LeftOut names what was found and had no room.
	LeftOut []string
	// Note says what the source had to do without, or why it has nothing; empty for
	// nothing.
	Note string
	// Failures name parts of the source that are missing.
	Failures []Failure
	// Rendered, unless nil, is called once the prompt was made, with the refs of those
	// items that stand in it. It must not block.
	Rendered func(refs []string)
}

// Block is a text of items, the most important first, that is kept.
type Block struct {
	// Frame is the injection without its text. MaxTokens is the cap of all that is shown
	// of the source, 0 none.
	Frame inject.Injection
	// Items are what was found for this prompt.
	Items []Item
	// Pack, unless nil, makes the items: those that fit so many tokens (0: any number) and
	// are not shown yet, the most important first, and the refs of those that do not fit.
	Pack func(room int, shown func(ref string) bool) (items []Item, left []string)
	// Packs names what Pack makes of, so that the same is not packed again while the block
	// stands. Required with Pack.
	Packs func(shown func(ref string) bool) string
	// Write writes an item; number counts those shown, from 1. Nil: its text.
	Write func(number int, item Item) string
	// Between joins items. Default a line break.
	Between string
	// Rest is what a last line says where not all items fit, or More of them were not even
	// looked at; empty: nothing says it.
	Rest string
	More bool
	// Input stands for what the block is made under other than the query, such as whose
	// records it shows: another one makes it anew.
	Input string
	// Stale says that one of Ask.Shown is no longer as it is shown.
	Stale bool
	// NewName is the name of the injection for what is found beyond a kept block.
	NewName string
}

// Item is a thing that is found, such as a record.
type Item struct {
	// Ref names it, Version says which state of it.
	Ref, Version string
	// Text is what it says, already without what a stranger must not write.
	Text string
	// Attributes override the attributes of the block's frame if it is the first item.
	Attributes string
	// Part: the text says a part of what Ref names, so that another may be shown, too.
	Part bool
}

// Failure is a source that a prompt had to do without.
type Failure struct {
	// Source is its name.
	Source string
	// TimedOut says that it took too long.
	TimedOut bool
	// Reason says why, for people.
	Reason string
}

// Gathered is what all sources have for a prompt. It belongs to the caller.
type Gathered struct {
	// Injections are in the order of the sources.
	Injections []inject.Injection
	// Skills are the agent's skills in addition to the declared ones.
	Skills []settings.Skill
	// Asked are the sections of the sources that answered, Failures name the sources that
	// are missing.
	Asked    []string
	Failures []Failure
	// Notes say by section what its source had to do without.
	Notes map[string]string
	// Refs name by injection what it shows, LeftOut by section what had no room.
	Refs, LeftOut map[string][]string

	rendered []func()
}

// Rendered reports to the sources which parts were used, once the prompt is made and stored;
// it is not called for a dry run. It does not block.
func (g *Gathered) Rendered() {
	for _, told := range g.rendered {
		told()
	}
}
