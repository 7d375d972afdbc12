package native

import (
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

// maxLineBytes bounds a command line, which is one argument of the shell.
const maxLineBytes = 64 << 10

// Permits returns nil for a command line that ShellOptions.Allow lets through, where programs
// are confined, and else the *tools.Error that its call gets.
func Permits(allow []string, line string) error {
	_, err := parse(line, programs{all: len(allow) == 0 || slices.Contains(allow, AllPrograms), names: allow})
	return err
}

// parse reads a line of the shell. Unless all programs are allowed, every command in it, also
// those in substitutions, begins with a name that is, written out.
func parse(line string, may programs) (command, error) {
	if len(line) > maxLineBytes {
		return command{}, tools.Errorf(tools.TooLarge, "command line of %d bytes exceeds the limit of %d", len(line), maxLineBytes)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		var bad syntax.ParseError
		if errors.As(err, &bad) {
			return command{}, refuse("command", "is no command line: "+bad.Text)
		}
		return command{}, refuse("command", "is no command line")
	}
	cmd := command{argv: []string{"/bin/sh", "-c", line}, line: line}
	var denied error
	commands := 0
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CallExpr:
			commands++
			if denied == nil && !may.all {
				denied = checkCall(line, n, may)
			}
			found := words(n)
			cmd.names, cmd.files = append(cmd.names, found...), append(cmd.files, found...)
		case *syntax.Redirect:
			if n.Word != nil {
				cmd.files = append(cmd.files, literal(n.Word))
			}
		case *syntax.FuncDecl:
			if !may.all {
				denied = may.refuse(n.Name.Value + "()")
			}
		case *syntax.DeclClause:
			commands++
			if !may.all {
				denied = may.refuse(n.Variant.Value)
			}
		}
		return denied == nil
	})
	if denied != nil {
		return command{}, denied
	}
	if commands == 0 {
		return command{}, refuse("command", "holds no command")
	}
	return cmd, nil
}

// checkCall checks the name of one command.
func checkCall(line string, call *syntax.CallExpr, may programs) error {
	if len(call.Args) == 0 {
		return nil // assignments alone
	}
	word := call.Args[0]
	if name := literal(word); !may.allow(name) {
		if name == "" {
			name = line[word.Pos().Offset():word.End().Offset()]
		}
		return may.refuse(name)
	}
	return nil
}

// literal is the text of a word that has no expansions; empty for another one.
func literal(word *syntax.Word) string {
	var text strings.Builder
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(p.Value)
		case *syntax.SglQuoted:
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return ""
				}
				text.WriteString(lit.Value)
			}
		default:
			return ""
		}
	}
	return text.String()
}

// words are the arguments of a command that are written out.
func words(call *syntax.CallExpr) []string {
	var list []string
	for _, word := range call.Args {
		if text := literal(word); text != "" {
			list = append(list, text)
		}
	}
	return list
}
