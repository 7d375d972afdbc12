// Package analysis cuts text into the terms that an index stores and a query
// asks for. Index and query use the same [Analyzer], so that they meet.
//
// A term is made like this:
//
//   - Text is normalized (NFKC) and case-folded, then cut into words after
//     Unicode's rules. Text in ASCII takes a shorter way to the same terms.
//   - A possessive 's falls away. The stop words of the [Language] fall away,
//     unless a text has no other word. Words are cut to their stem; in English,
//     irregular forms (went, children) become their base first.
//   - In English, Latin letters lose their accents: café is cafe. A word that has
//     some is no stop word.
//   - Words of other scripts have the rules of their script, whatever the Language:
//     Cyrillic the rules of Russian; Arabic, Greek, Hebrew, Devanagari and Tamil lose
//     points, accents and the commonest endings.
//   - With [Auto] each text whose small words show another language than
//     English (such as German or Spanish) has the stems of that language in addition to the
//     English ones. A query of a word or two shows no language and asks for English stems.
//   - Runs of Han, Kana, Hangul, Thai, Lao, Khmer and Burmese become overlapping
//     pairs of characters; a lone character stands for itself.
//   - Identifiers are kept whole and split: getUserName is also get, user,
//     name; src/app.py is also src, app.py, app, py; v1.2.3 is also v1, 2, 3.
//   - Numbers lose their thousands separators: 45,000 is 45000.
//   - A name keeps the signs that belong to it: AT&T, C++, .NET. Dashes, apostrophes, digits
//     and invisible characters are read as a keyboard has them.
//   - Dates meet by year, month and day: 2023-05-08 is 2023, may, 8 and itself;
//     in 8 May 2023 the month is no stop word, and Sept. 8 is september 8.
//
// Beside these, [Analyzer.Indexed] keeps stop words, single characters and other spellings
// (mueller, wifi), and [Analyzer.Asked] asks for them, so that a text is found as it is
// written by a query that has nothing else.
//
// Caveats: month names are English in all languages. Ukrainian and other words in
// Cyrillic, and texts that show no language, are cut with the wrong rules, alike in text
// and query. An index has the terms of one analysis, which [Analyzer.Name]
// names: a change of the terms of a text needs a new version, and
// indexes are made anew, as they are for another language.
package analysis
