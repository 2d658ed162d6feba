package http1

const (
	daySeconds = 24 * 60 * 60
	// lastSecond is the last second of the year 9999, because the format has four digits for the
	// year.
	lastSecond = 253402300799
)

// AppendDate appends a time in the format of HTTP (IMF-fixdate, RFC 9110, section 5.6.7): "Sun, 06
// Nov 1994 08:49:37 GMT". The time is in seconds since 1970 in UTC, without leap seconds. Times
// before 1970 and after 9999 are replaced by the first and the last second of that range.
func AppendDate(b []byte, unixSeconds int64) []byte {
	unixSeconds = min(max(unixSeconds, 0), lastSecond)
	days, second := unixSeconds/daySeconds, unixSeconds%daySeconds
	year, month, day := civil(days)
	// 1 January 1970 was a Thursday.
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

// civil returns the date of the given number of days after 1 January 1970, in the Gregorian
// calendar.
func civil(days int64) (year, month, day int64) {
	// If years start on 1 March, a leap day is the last day of its year, and the first day of each
	// month is on a straight line, rounded down: 153 days in 5 months. Days are counted from 1
	// March of the year 0, which is 719468 days before 1 January 1970.
	days += 719468
	const fourCenturies = 146097
	era, of := days/fourCenturies, days%fourCenturies
	// 1460 days are 4 years without the leap day, 36524 days are a century, and the last day of the
	// era is the leap day of its 400th year.
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
