"""What PostgreSQL's catalogue is asked, and how a column of each of its types is read."""

# A version begins with the number of the file that holds the rows. What follows changes with every insert,
# update and delete soon after it was committed, and with the columns; reset counters begin anew.
# Partitions are parts of their parent and no tables of their own.
LISTING = """
SELECT current_database()::text, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname),
       CASE WHEN c.relkind IN ('r', 'm', 'p') THEN parts.bytes END,
       CASE WHEN c.relkind IN ('r', 'm', 'p') AND NOT (c.relkind = 'r' AND c.relhassubclass)
                 AND current_setting('track_counts')::boolean AND NOT pg_is_in_recovery()
            THEN concat_ws(' ', coalesce(pg_relation_filenode(c.oid)::text, 'parts'), md5(concat(
                parts.state, '|', columns.state, '|',
                (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()))))
            ELSE '' END
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
    SELECT sum(pg_table_size(part))::bigint AS bytes,
           string_agg(concat_ws(' ', part, pg_relation_filenode(part), pg_stat_get_tuples_inserted(part),
                                pg_stat_get_tuples_updated(part), pg_stat_get_tuples_deleted(part)),
                      ',' ORDER BY part) AS state
    FROM (SELECT c.oid AS part UNION SELECT relid::oid FROM pg_partition_tree(c.oid)) AS all_parts
) AS parts
CROSS JOIN LATERAL (
    SELECT string_agg(concat(attname, ' ', atttypid, ' ', atttypmod), ',' ORDER BY attnum) AS state
    FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
) AS columns
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"
"""

# Domains are as the type that they are made of.
COLUMNS = """
SELECT a.attname, coalesce(b.typname, t.typname), coalesce(b.typtype, t.typtype)::text
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE a.attrelid = {}::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

# Before version 14 a range of blocks was found by reading all.
SHAPE = """
SELECT CASE WHEN relkind IN ('r', 'm') AND NOT relhassubclass
                 AND current_setting('server_version_num')::int >= 140000
            THEN pg_relation_size(oid) / current_setting('block_size')::int ELSE 0 END
FROM pg_class WHERE oid = {}::regclass
"""

FILE = "SELECT coalesce(pg_relation_filenode({}::regclass)::text, 'parts')"

AS_IT_IS = "{}"
AS_TEXT = "{}::text"
# The driver would hand on times that are infinite, or too far away for Arrow, as others.
IN_REACH = "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31' THEN {0} END"
ENUM = "e"
EXPRESSIONS = {
    **dict.fromkeys(
        ("int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "time"), AS_IT_IS
    ),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), IN_REACH),
    # Numbers of any length are read from their text, like those of a CSV file.
    **dict.fromkeys(("numeric", "uuid", "bpchar", "name", "char", "citext", "inet", "cidr"), AS_TEXT),
    "money": "{}::numeric::text",
    "oid": "{}::bigint",
}


def expression_of(column: str, type_name: str, type_type: str) -> str | None:
    """How a column is read; None if it can be neither a key nor a number, like lists and documents."""
    way = AS_TEXT if type_type == ENUM else EXPRESSIONS.get(type_name)
    return way.format(column) if way else None
