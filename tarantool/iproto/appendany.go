package iproto

// AppendAny appends a value of one of the types that [Decoder.Any] returns, or a number of any
// other size. Values of other types are appended as nil, so the caller must check its values.
func AppendAny(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return AppendBool(b, v)
	case int64:
		return AppendInt(b, v)
	case int:
		return AppendInt(b, int64(v))
	case uint64:
		return AppendUint(b, v)
	case float64:
		return AppendFloat64(b, v)
	case float32:
		return AppendFloat32(b, v)
	case string:
		return AppendString(b, v)
	case []byte:
		return AppendBytes(b, v)
	case []any:
		b = AppendArray(b, len(v))
		for _, elem := range v {
			b = AppendAny(b, elem)
		}
		return b
	case map[any]any:
		b = AppendMap(b, len(v))
		for key, elem := range v {
			b = AppendAny(AppendAny(b, key), elem)
		}
		return b
	case map[string]any:
		b = AppendMap(b, len(v))
		for key, elem := range v {
			b = AppendAny(AppendString(b, key), elem)
		}
		return b
	case Decimal:
		return AppendDecimal(b, v)
	case UUID:
		return AppendUUID(b, v)
	case Datetime:
		return AppendDatetime(b, v)
	case Interval:
		return AppendInterval(b, v)
	case *BoxError:
		return AppendBoxError(b, v)
	case Tuple:
		return AppendTuple(b, v)
	case Arrow:
		return AppendArrow(b, v)
	case Ext:
		return AppendExt(b, v.Type, v.Data)
	}
	return AppendNil(b)
}
