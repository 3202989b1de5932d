/* The error document, in one place, for the HTTP edge as well as for the API. */
#include "base/problem.h"

const char *status_reason(int status)
{
	switch (status) {
	case 200: return "OK";
	case 201: return "Created";
	case 202: return "Accepted";
	case 204: return "No Content";
	case 400: return "Bad Request";
	case 401: return "Unauthorized";
	case 402: return "Payment Required";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 406: return "Not Acceptable";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 412: return "Precondition Failed";
	case 413: return "Content Too Large";
	case 414: return "URI Too Long";
	case 415: return "Unsupported Media Type";
	case 417: return "Expectation Failed";
	case 421: return "Misdirected Request";
	case 422: return "Unprocessable Content";
	case 429: return "Too Many Requests";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 503: return "Service Unavailable";
	case 505: return "HTTP Version Not Supported";
	default: return status < 400 ? "OK" : status < 500 ? "Client Error" : "Server Error";
	}
}

void problem_write(struct buf *b, const struct problem *p)
{
	json_open(b, '{');
	json_pair_str(b, "detail", p->detail);
	json_pair_int(b, "error", p->status);
	json_pair_z(b, "errorCode", p->code);
	json_key(b, "parameters");
	json_raw(b, p->parameters.n ? p->parameters : STR("[]"));
	json_pair_z(b, "reason", status_reason(p->status));
	json_close(b, '}');
}
