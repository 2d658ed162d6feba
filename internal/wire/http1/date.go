package http1

const (
	daySeconds = 24 * 60 * 60
	// lastSecond is the end of the year 9999: the format has four digits for it.
	lastSecond = 253402300799
)

// AppendDate appends a moment as HTTP writes it (IMF-fixdate, RFC 9110, section
// 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT". It counts seconds since 1970 in UTC
// without leap seconds. Moments before 1970 and after 9999 are cut off to those.
func AppendDate(b []byte, unixSeconds int64) []byte {
	unixSeconds = min(max(unixSeconds, 0), lastSecond)
	days, second := unixSeconds/daySeconds, unixSeconds%daySeconds
	year, month, day := civil(days)
	// 1970 began on a Thursday.
	b = append(b, "ThuFriSatSunMonTueWed"[days%7*3:][:3]...)
	b = append(b, ',', ' ')
	b = appendTwo(b, day)
	b = append(b, ' ')
	b = append(b, "JanFebMarAprMayJunJulAugSepOctNovDec"[(month-1)*3:][:3]...)
	b = append(b, ' ')
	b = appendTwo(b, year/100)
	b = appendTwo(b, year%100)
	b = append(b, ' ')
	b = appendTwo(b, second/3600)
	b = append(b, ':')
	b = appendTwo(b, second/60%60)
	b = append(b, ':')
	b = appendTwo(b, second%60)
	return append(b, " GMT"...)
}

// civil returns the date that is so many days after 1 January 1970, in the
// Gregorian calendar.
func civil(days int64) (year, month, day int64) {
	// Counted from 1 March of the year 0 the leap day is the last of its year, and
	// the months have lengths that a straight line gives, rounded down: 153 days
	// in 5 months. There are 719468 days between that day and 1970.
	days += 719468
	const fourCenturies = 146097
	era, of := days/fourCenturies, days%fourCenturies
	// 1460 days are 4 years without the leap day, 36524 a century, and the last
	// day of the era is the leap day of its 400th year.
	inEra := (of - of/1460 + of/36524 - of/(fourCenturies-1)) / 365
	inYear := of - (365*inEra + inEra/4 - inEra/100)
	fromMarch := (5*inYear + 2) / 153
	day = inYear - (153*fromMarch+2)/5 + 1
	year = era*400 + inEra
	if month = fromMarch + 3; month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

func appendTwo(b []byte, v int64) []byte {
	return append(b, byte('0'+v/10), byte('0'+v%10))
}
