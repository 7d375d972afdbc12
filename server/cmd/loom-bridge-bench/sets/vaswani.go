package sets

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	vaswaniDocument = regexp.MustCompile(`(?s)<DOC>\s*<DOCNO>(\d+)</DOCNO>(.*?)</DOC>`)
	vaswaniTopic    = regexp.MustCompile(`(?s)<num>(\d+)</num><title>(.*?)</title>`)
)

// Vaswani reads the collection of abstracts in the folder of the evaluation data. Its one
// talk has no sessions, authors or times.
func Vaswani(data string) (*Set, error) {
	folder := filepath.Join(data, "vaswani")
	talk := &Talk{ID: "vaswani"}
	documents, err := os.ReadFile(filepath.Join(folder, "doc-text.trec"))
	if err != nil {
		return nil, err
	}
	for _, match := range vaswaniDocument.FindAllStringSubmatch(string(documents), -1) {
		talk.Turns = append(talk.Turns, Turn{ID: match[1], Text: oneLine(match[2])})
	}
	relevant, err := vaswaniJudgements(filepath.Join(folder, "qrels"))
	if err != nil {
		return nil, err
	}
	topics, err := os.ReadFile(filepath.Join(folder, "query-text.trec"))
	if err != nil {
		return nil, err
	}
	for _, match := range vaswaniTopic.FindAllStringSubmatch(string(topics), -1) {
		if evidence := relevant[match[1]]; len(evidence) > 0 {
			talk.Questions = append(talk.Questions, Question{Text: oneLine(match[2]), Evidence: evidence, After: len(talk.Turns)})
		}
	}
	return &Set{Name: "Vaswani", Talks: []*Talk{talk}}, nil
}

// vaswaniJudgements returns the relevant documents of every query.
func vaswaniJudgements(path string) (map[string][]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	relevant := make(map[string][]string)
	for line := range strings.Lines(string(raw)) {
		var query, ignored, document string
		var grade int
		if _, err := fmt.Sscan(line, &query, &ignored, &document, &grade); err == nil && grade > 0 {
			relevant[query] = append(relevant[query], document)
		}
	}
	return relevant, nil
}
