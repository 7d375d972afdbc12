// Package glob has the patterns by which searches choose files.
package glob

import (
	"errors"
	"regexp"
	"strings"
)

// Pattern says which files a search looks at. The zero Pattern matches all.
type Pattern struct {
	pattern *regexp.Regexp
	// base says that only the file's name is compared, not its path.
	base bool
}

// Parse reads a pattern: * and ? stand for anything within a name, ** for
// any folders, [a-z] for one of a set, {a,b} for one of a list. A pattern
// without a slash is compared with the file's name alone, any other with its
// path from the folder that is searched. A regular expression takes time in
// proportion to the name, whatever the pattern; trying alternatives one after the
// other would take 2^n steps for n of them, and a model writes the pattern.
func Parse(text string) (Pattern, error) {
	p := parser{in: text}
	if err := p.run(); err != nil {
		return Pattern{}, err
	}
	pattern, err := regexp.Compile("^(?s:" + p.out.String() + ")$")
	if err != nil {
		return Pattern{}, errors.New("is no valid pattern")
	}
	return Pattern{pattern: pattern, base: !strings.Contains(text, "/")}, nil
}

// Match compares a file's path, relative to the folder that is searched.
func (p Pattern) Match(rel string) bool {
	if p.pattern == nil {
		return true
	}
	if p.base {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	return p.pattern.MatchString(rel)
}

// parser converts a pattern into a regular expression.
type parser struct {
	in     string
	out    strings.Builder
	braces int
}

func (p *parser) run() error {
	for p.in != "" {
		if err := p.next(); err != nil {
			return err
		}
	}
	if p.braces > 0 {
		return errors.New("has an open brace")
	}
	return nil
}

func (p *parser) next() error {
	switch {
	case p.cut("**/"):
		p.out.WriteString("(?:.*/)?")
	case p.cut("**"):
		p.out.WriteString(".*")
	case p.cut("*"):
		p.out.WriteString("[^/]*")
	case p.cut("?"):
		p.out.WriteString("[^/]")
	case p.cut("["):
		p.out.WriteByte('[')
		if p.cut("!") || p.cut("^") {
			p.out.WriteByte('^')
		}
		members, rest, ok := strings.Cut(p.in, "]")
		if !ok || members == "" {
			return errors.New("has an open bracket")
		}
		p.in = rest
		p.out.WriteString(strings.NewReplacer(`\`, `\\`, "[", `\[`, "^", `\^`).Replace(members) + "]")
		return nil
	case p.cut("{"):
		p.braces++
		p.out.WriteString("(?:")
	case p.braces > 0 && p.cut("}"):
		p.braces--
		p.out.WriteString(")")
	case p.braces > 0 && p.cut(","):
		p.out.WriteString("|")
	default:
		p.literal()
	}
	return nil
}

func (p *parser) cut(prefix string) bool {
	rest, ok := strings.CutPrefix(p.in, prefix)
	if ok {
		p.in = rest
	}
	return ok
}

// literal copies one character; a backslash takes the next one as it is.
func (p *parser) literal() {
	if len(p.in) > 1 && p.in[0] == '\\' {
		p.in = p.in[1:]
	}
	r := []rune(p.in[:min(len(p.in), 4)])[0]
	size := len(string(r))
	if r == '\uFFFD' {
		size = 1
	}
	p.out.WriteString(regexp.QuoteMeta(p.in[:min(size, len(p.in))]))
	p.in = p.in[min(size, len(p.in)):]
}
