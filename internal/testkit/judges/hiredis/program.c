/* Reads a document with hiredis: once, 100 times in a pipeline, one that is missing,
 * and tries a write. Arguments: port, user, password, key. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisReply *checked(redisContext *c, redisReply *r) {
	if (r == NULL) {
		fprintf(stderr, "hiredis: %s\n", c->errstr);
		exit(1);
	}
	return r;
}

static void show(redisReply *r) {
	if (r->type == REDIS_REPLY_NIL)
		puts("null");
	else if (r->type == REDIS_REPLY_ERROR)
		printf("%.*s\n", (int)strcspn(r->str, " "), r->str);
	else
		printf("%.*s\n", (int)r->len, r->str);
	freeReplyObject(r);
}

int main(int argc, char **argv) {
	redisContext *c = argc == 5 ? redisConnect("127.0.0.1", atoi(argv[1])) : NULL;
	if (c == NULL || c->err)
		return 2;
	freeReplyObject(checked(c, redisCommand(c, "AUTH %s %s", argv[2], argv[3])));
	show(checked(c, redisCommand(c, "GET %s", argv[4])));
	for (int i = 0; i < 100; i++)
		redisAppendCommand(c, "GET %s", argv[4]);
	for (int i = 0; i < 100; i++) {
		void *r = NULL;
		if (redisGetReply(c, &r) != REDIS_OK)
			checked(c, NULL);
		show(r);
	}
	show(checked(c, redisCommand(c, "GET depts:9999999")));
	show(checked(c, redisCommand(c, "SET %s x", argv[4])));
	redisFree(c);
	return 0;
}
