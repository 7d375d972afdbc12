package media_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"reflect"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/media"
)

func mustPNG(tb testing.TB, width, height int) []byte {
	tb.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func TestInfo(t *testing.T) {
	picture := mustPNG(t, 640, 480)
	for name, test := range map[string]struct {
		info media.Info
		want string
	}{
		"looked at":  {media.InfoOf("", picture, int64(len(picture))), "image image/png 640x480"},
		"told":       {media.InfoOf("image/x-raw", []byte("raw"), 3), "image image/x-raw 3 bytes"},
		"as base64":  {media.InfoOfBase64("", base64.StdEncoding.EncodeToString(picture)), "image image/png 640x480"},
		"unpadded":   {media.InfoOfBase64("", base64.RawURLEncoding.EncodeToString(picture)), "image image/png 640x480"},
		"no base64":  {media.InfoOfBase64("image/png", "*"), "image image/png 0 bytes"},
		"a sound":    {media.InfoOf("", []byte("ID3..."), 6), "audio audio/mpeg 6 bytes"},
		"who knows":  {media.InfoOf("", []byte{0, 1}, 2), "binary 2 bytes"},
		"cut header": {media.InfoOf("image/png", picture[:12], 12), "image image/png 12 bytes"},
	} {
		if got := test.info.Words(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestDataURLs(t *testing.T) {
	for text, want := range map[string]string{
		"data:image/png;base64,AAAA":                      "image/png",
		" \ndata:image/png;base64,AAAA\n":                 "image/png",
		"data:audio/wav;codecs=1;base64,AA_-":             "audio/wav",
		"data:text/plain;base64,AAAA":                     "",
		"data:image/png,AAAA":                             "",
		"data:image/png;base64,AA AA":                     "",
		"see data:image/png;base64,AAAA":                  "",
		"data:" + strings.Repeat("x", 200) + ";base64,AA": "",
	} {
		url, ok := media.ParseDataURL(text)
		if ok != (want != "") || ok && url.Type != want {
			t.Errorf("%q: %t %q, want %q", text, ok, url.Type, want)
		}
	}
}

// Hide and Each find the same bytes, and Hide leaves the value as it is.
func TestHide(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("picture"), 30))
	for name, test := range map[string]struct {
		text, want string
		found      int
	}{
		"nothing":     {`{"a":[1,"text"],"b":null}`, `{"a":[1,"text"],"b":null}`, 0},
		"a data URL":  {`{"shot":"data:image/png;base64,` + data + `","n":1}`, `{"n":1,"shot":"<image/png>"}`, 1},
		"MCP":         {`[{"type":"image","data":"` + data + `","mimeType":"image/gif"},{"type":"text","text":"t"}]`, `["<image/gif>",{"text":"t","type":"text"}]`, 1},
		"a resource":  {`{"type":"resource","resource":{"uri":"u","blob":"` + data + `","mimeType":"x/y"}}`, `"<x/y>"`, 1},
		"Anthropic":   {`{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"` + data + `"}}`, `"<image/jpeg>"`, 1},
		"OpenAI":      {`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}`, `"<image/png>"`, 1},
		"an address":  {`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`, `{"image_url":{"url":"https://x/y.png"},"type":"image_url"}`, 0},
		"no base64":   {`{"type":"image","data":"a picture of a cat"}`, `{"data":"a picture of a cat","type":"image"}`, 0},
		"deep, twice": {`{"a":{"b":["data:image/png;base64,` + data + `"]},"c":{"type":"audio","data":"` + data + `","mimeType":"audio/wav"}}`, `{"a":{"b":["<image/png>"]},"c":"<audio/wav>"}`, 2},
	} {
		var value, before any
		if err := json.Unmarshal([]byte(test.text), &value); err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal([]byte(test.text), &before)
		got, found := media.Hide(value, func(i media.Info) string { return "<" + i.Type + ">" })
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(got); err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(text.String()) != test.want || len(found) != test.found {
			t.Errorf("%s: %d found, %s, want %s", name, len(found), text.String(), test.want)
		}
		if !reflect.DeepEqual(value, before) {
			t.Errorf("%s: the value was changed", name)
		}
		each := 0
		media.Each(value, func(mediaType, payload string) bool {
			if payload != data || mediaType != found[each].Type {
				t.Errorf("%s: payload %d is %.20q of %s", name, each, payload, mediaType)
			}
			each++
			return true
		})
		if each != test.found {
			t.Errorf("%s: Each finds %d, Hide %d", name, each, test.found)
		}
	}
}

// Data URLs within a text are found, and nothing else of it changes.
func TestHideText(t *testing.T) {
	url := "data:image/png;base64," + strings.Repeat("AAAA", 30)
	for text, want := range map[string]string{
		"![](" + url + ") and " + url + ".":  "![](<image/png>) and <image/png>.",
		";base64," + strings.Repeat("A", 90): ";base64," + strings.Repeat("A", 90),
		"data:;base64,AAAA":                  "data:;base64,AAAA",
		"no bytes":                           "no bytes",
	} {
		if got, _ := media.HideText(text, func(i media.Info) string { return "<" + i.Type + ">" }); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

func FuzzHideText(f *testing.F) {
	for _, text := range []string{"", "data:", "data:image/png;base64,", ";base64,", "x data:image/png;base64," + strings.Repeat("A", 70) + " y"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hidden := 0
		got, found := media.HideText(text, func(media.Info) string { return "\x00" })
		media.Each(text, func(_, payload string) bool {
			hidden++
			return strings.Contains(text, payload)
		})
		if hidden != len(found) || len(found) == 0 && got != text || strings.Count(got, "\x00") != len(found)+strings.Count(text, "\x00") {
			t.Fatalf("%q became %q: %d found, %d by Each", text, got, len(found), hidden)
		}
	})
}

func TestBlocksText(t *testing.T) {
	isWords := func(text string) bool { return text == "<image>" }
	for text, want := range map[string]string{
		`{"content":[{"type":"text","text":"one"},"<image>",{"type":"resource","resource":{"uri":"u","text":"two"}}],"isError":false}`: "one\n<image>\ntwo",
		`[{"type":"text","text":"one"}]`: "one",
		`[]`:                             "",
		`["one"]`:                        "",
		`{"content":[{"type":"text","text":"one"}],"more":1}`: "",
		`[{"type":"tool_use","text":"one"}]`:                  "",
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if got, ok := media.BlocksText(value, isWords); got != want || ok != (want != "") {
			t.Errorf("%s: %t %q, want %q", text, ok, got, want)
		}
	}
}
