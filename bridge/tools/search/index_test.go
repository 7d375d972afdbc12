package search_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/tools/search"
)

var few = []search.Indexed{
	{Name: "cloud:listBuckets", Description: "List storage buckets."},
	{Name: "cloud:deleteBucket", Description: "Remove a storage bucket.", Schema: json.RawMessage(`{"properties":{"bucketName":{"type":"string"},"force":true}}`)},
	{Name: "weather.forecast", Description: "The days ahead."},
	{Name: "notes-write", Description: "Keep a text.", Schema: json.RawMessage(`{"properties":{"attachment":{"description":"A photograph"}}}`)},
	{Name: "broken", Description: strings.Repeat("storage ", 4000), Schema: json.RawMessage(`{"properties":7`)},
}

func TestFind(t *testing.T) {
	x := search.New(few)
	for _, test := range []struct {
		question string
		limit    int
		want     []string
	}{
		{"delete a bucket", 1, []string{"cloud:deleteBucket"}},
		{"delete_bucket", 1, []string{"cloud:deleteBucket"}}, // names are parted at separators
		{"DELETEBUCKET", 1, []string{"cloud:deleteBucket"}},  // and known whole
		{"erase buckets", 1, []string{"cloud:deleteBucket"}}, // words that mean the same, and stems
		{"wether forcast", 1, []string{"weather.forecast"}},  // spelled almost alike
		{"photograph", 5, []string{"notes-write"}},           // what arguments say
		{"will it rain", 5, []string{"weather.forecast"}},
		{"zzz qqq", 5, nil},
		{"", 5, nil},
		{"bucket", 0, nil},
	} {
		var got []string
		for _, hit := range x.Find(test.question, test.limit) {
			got = append(got, few[hit.At].Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q found %v, want %v", test.question, got, test.want)
		}
	}
	if got := search.New(nil).Find("anything", 5); len(got) != 0 {
		t.Errorf("of no tools %v", got)
	}
}

// A question costs little, whatever there is.
func BenchmarkFind(b *testing.B) {
	var all []search.Indexed
	for i := range 10_000 {
		all = append(all, search.Indexed{Name: fmt.Sprintf("server%d:tool_%d", i%64, i), Description: fmt.Sprintf("Do the thing number %d with care.", i)})
	}
	x := search.New(all)
	for b.Loop() {
		x.Find("do thing 77 with tools of server 3", 5)
	}
}
