package step

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/media"
)

// Figures of bytes that no prompt shows. They are keys of a step's metadata and
// never change.
const (
	figureMedia  = "media_type"
	figureWidth  = "width"
	figureHeight = "height"
	figureMedias = "media" // how many there are
)

// Places for names in a text (see Reduced.Named). Both are noncharacters, which no
// text for people holds.
const (
	pathMark = "\uFDD0" // where the result can be read
	idMark   = "\uFDD1" // the step's id
)

func replaceMarks(text, id, path string) string {
	// An id never holds a mark, and a path may.
	return strings.ReplaceAll(strings.ReplaceAll(text, idMark, id), pathMark, path)
}

// unmarked is a text without the place for a path, which stands behind it anyway.
func unmarked(text string) string { return strings.ReplaceAll(text, ", "+pathMark, "") }

// stub stands for bytes in a prompt: "[image image/png 640x480, {path}]".
func stub(info media.Info) string { return "[" + info.Words() + ", " + pathMark + "]" }

// isStub reports whether a text is what stands for bytes.
func isStub(text string) bool { return strings.HasSuffix(text, ", "+pathMark+"]") }

// blocksText is the text of a result that is content blocks, without their bytes.
func blocksText(value any) (string, bool) { return media.BlocksText(value, isStub) }

// found notes bytes that are not shown.
func (rd *finding) found(all []media.Info) {
	if len(all) == 0 {
		return
	}
	rd.named = true
	rd.describe(all[0])
	if len(all) > 1 {
		rd.figure(figureMedias, len(all))
	}
}

// describe adds the properties of bytes to the figures.
func (rd *finding) describe(info media.Info) {
	rd.figure(figureMedia, info.Type)
	if info.Width > 0 && info.Height > 0 {
		rd.figure(figureWidth, info.Width)
		rd.figure(figureHeight, info.Height)
	}
}

// showText shows a text, unless it is bytes written as text.
func (rd *finding) showText(text string) {
	if url, ok := media.ParseDataURL(text); ok {
		rd.found([]media.Info{url.Info()})
		rd.shown, rd.printed = shownText(stub(url.Info())), false
		return
	}
	if strings.IndexByte(text, 0) >= 0 {
		rd.shown, rd.printed = shownText(fmt.Sprintf("[%d bytes, no text]", len(text))), false
		return
	}
	text, found := media.HideText(text, stub)
	rd.found(found)
	rd.shown = shownText(text)
}

// noText looks whether a body is bytes, as they are or written as text, and says
// so in their place.
func (rd *finding) noText(result *Result, b body) {
	if !b.binary && int64(len(b.text)) == b.size {
		if url, ok := media.ParseDataURL(b.text); ok {
			rd.found([]media.Info{url.Info()})
			rd.shown, rd.printed, rd.media = shownText(stub(url.Info())), false, url.Type
			return
		}
		if text, found := media.HideText(b.text, stub); len(found) > 0 {
			rd.found(found)
			rd.shown = shownText(text)
		}
	}
	isMedia := result.MediaType != "" && media.Kind(result.MediaType) != media.Binary
	if !b.binary && !isMedia {
		return
	}
	info := media.InfoOf(result.MediaType, []byte(b.text), b.size)
	rd.text.ext = media.Extension(info.Type)
	rd.printed, rd.media = false, info.Type
	if info.Kind() == media.Binary {
		rd.shown = shownText(fmt.Sprintf("[%d bytes, no text]", b.size))
		rd.figure(figureMedia, info.Type)
		return
	}
	rd.shown = shownText(stub(info))
	rd.found([]media.Info{info})
}

// withoutBytes is a JSON value with a few words in the place of all bytes that it
// holds in text form, and what those are. The value itself stays as it is.
func withoutBytes(value any) (any, []media.Info) { return media.Hide(value, stub) }
