package Test::Xet::HTTP::Response;

# Copyright (C) the ngx_http_xet_module authors

# Parses one response, incrementally and strictly.  Fields of the object:
#
#     status, reason, version, headers (lower-case name => [ values ]), body
#     raw       header and body as received
#     interim   number of 1xx responses before it
#     complete  whether the whole response was received
#     error     the protocol error, if any
#     time      seconds from the request to the end of the headers
#     segments  [ seconds, length of the body so far ], one for each read

use warnings;
use strict;

use JSON::PP ();
use Time::HiRes qw/ time /;

sub new {
	my ($class, $method, $started) = @_;

	return bless {
		method => $method, started => $started, status => 0,
		reason => '', headers => {}, body => '', raw => '',
		segments => [], state => 'header', interim => 0
	}, $class;
}

sub next {
	my ($self) = @_;

	my $next = ref($self)->new($self->{method}, $self->{started});
	$next->{interim} = $self->{interim} + 1;

	return $next;
}

sub fail {
	my ($self, $error) = @_;

	$self->{error} //= $error;
	$self->{state} = 'done';

	return 'done';
}

# Consumes the part of the buffer that belongs to this response.  Returns "done"
# at the end of the response, else "more".

sub feed {
	my ($self, $buffer, $eof) = @_;

	my $before = length($self->{body});

	1 while $self->{state} ne 'done' && $self->step($buffer, $eof);

	push @{ $self->{segments} }, [ time() - $self->{started},
		length($self->{body}) ] if length($self->{body}) > $before;

	return 'done' if $self->{state} eq 'done';

	if ($eof) {
		return $self->fail(!$self->{status} ? 'no response'
			: 'truncated response');
	}

	return 'more';
}

# Removes $n bytes from the buffer.

sub take {
	my ($self, $buffer, $n) = @_;

	my $bytes = substr($$buffer, 0, $n, '');
	$self->{raw} .= $bytes;

	return $bytes;
}

sub step {
	my ($self, $buffer, $eof) = @_;

	my $state = $self->{state};

	if ($state eq 'header') {
		my $end = index($$buffer, "\r\n\r\n");

		if ($end < 0) {
			$self->fail('endless header')
				if length($$buffer) > 1 << 20;
			return 0;
		}

		return $self->header($self->take($buffer, $end + 4));
	}

	if ($state eq 'length') {
		my $left = $self->{left};
		my $n = length($$buffer) < $left ? length($$buffer) : $left;

		$self->{body} .= $self->take($buffer, $n);
		$self->{left} -= $n;

		$self->end() if $self->{left} == 0;
		return 0;
	}

	if ($state eq 'eof') {
		$self->{body} .= $self->take($buffer, length($$buffer));
		$self->end() if $eof;
		return 0;
	}

	return $self->chunked($buffer);
}

sub chunked {
	my ($self, $buffer) = @_;

	my $state = $self->{state};

	if ($state eq 'chunk') {
		my $n = length($$buffer);
		$n = $self->{left} if $n > $self->{left};

		$self->{body} .= $self->take($buffer, $n);
		$self->{left} -= $n;

		$self->{state} = 'chunk end' if $self->{left} == 0;
		return $n;
	}

	my $end = index($$buffer, "\r\n");
	return 0 if $end < 0;

	my $line = $self->take($buffer, $end + 2);
	$line =~ s/\r\n\z//;

	if ($state eq 'chunk end') {
		$self->fail('no CRLF after a chunk') if $line ne '';
		$self->{state} = 'chunk size' if !$self->{error};

	} elsif ($state eq 'chunk size') {
		if ($line !~ /\A([0-9a-f]{1,15})(?:;.*)?\z/i) {
			$self->fail("bad chunk size \"$line\"");
			return 0;
		}

		$self->{left} = hex($1);
		$self->{state} = $self->{left} ? 'chunk' : 'trailer';

	} else {
		$self->end() if $line eq '';
	}

	return 1;
}

sub end {
	my ($self) = @_;

	$self->{complete} = 1;
	$self->{state} = 'done';
}

sub header {
	my ($self, $text) = @_;

	$self->{time} = time() - $self->{started};

	my ($line, @lines) = split(/\r\n/, $text);

	if ($line !~ m!\AHTTP/(1\.[01]) ([1-9]\d\d)(?: (.*))?\z!) {
		$self->fail("bad status line \"$line\"");
		return 0;
	}

	@$self{qw/ version status reason /} = ($1, $2 + 0, $3 // '');

	for (@lines) {
		if (!/\A([!#\$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*\z/) {
			$self->fail("bad header \"$_\"");
			return 0;
		}

		push @{ $self->{headers}{lc $1} }, $2;
	}

	my $length = $self->{headers}{'content-length'};
	my $coding = $self->{headers}{'transfer-encoding'};

	if ($length && ($coding || @$length > 1 || $length->[0] !~ /\A\d+\z/))
	{
		$self->fail('bad framing');

	} elsif ($self->{method} eq 'HEAD' || $self->{status} < 200
		|| $self->{status} == 204 || $self->{status} == 304)
	{
		$self->end();

	} elsif ($coding) {
		$self->{state} = 'chunk size';
		$self->fail("coding $coding->[0]") if $coding->[0]
			!~ /\Achunked\z/i;

	} elsif ($length) {
		$self->{state} = 'length';
		$self->{left} = $length->[0];

	} else {
		$self->{state} = 'eof';
	}

	return 1;
}

# --------------------------------------------------------------------------

# Returns the value of a header, undef if absent; all values in list context.

sub header_value {
	my ($self, $name) = @_;

	my $values = $self->{headers}{lc $name} || [];

	return wantarray ? @$values : $values->[0];
}

# Returns the parsed JSON body, undef if it is not JSON.  Integers stay exact.

sub json {
	my ($self) = @_;

	return scalar eval { JSON::PP->new->utf8->decode($self->{body}) };
}

# Returns status, body and error in one line.

sub summary {
	my ($self) = @_;

	return "$self->{status} $self->{body}" . ($self->{error} // '');
}

# Returns an error as clients see it: [ status, type, code ].  Without a code,
# the body takes its place.

sub refusal {
	my ($self) = @_;

	my $json = $self->json();

	return [ $self->{status}, scalar $self->header_value('Content-Type'),
		ref $json eq 'HASH' && ref $json->{error} eq 'HASH'
			? $json->{error}{code} : $self->{body} ];
}

# Returns the status, followed by the code of the module's error, if there is
# one: "404 no_such_object".

sub code {
	my ($self) = @_;

	my $json = $self->json();
	my $error = ref($json) eq 'HASH' ? $json->{error} : undef;

	return ref($error) eq 'HASH' ? "$self->{status} $error->{code}"
		: $self->{status};
}

# Returns the frames of newline-delimited JSON: [ { time => seconds, data => ...
# } ].  The last frame may lack its newline.

sub frames {
	my ($self) = @_;

	my (@frames, $pos);

	$pos = 0;

	for my $line (split(/(?<=\n)/, $self->{body})) {
		$pos += length($line);

		my ($segment) = grep { $_->[1] >= $pos }
			@{ $self->{segments} };

		$line =~ s/\n\z//;
		next if $line eq '';

		push @frames, {
			time => $segment->[0], line => $line,
			data => scalar eval {
				JSON::PP->new->utf8->decode($line)
			}
		};
	}

	return \@frames;
}

# Returns the parts of multipart/byteranges: [ { headers, start, end
# (inclusive), total, body } ].  Dies with the reason if the body is invalid.

sub parts {
	my ($self) = @_;

	my $type = $self->header_value('Content-Type') // '';

	$type =~ m!\Amultipart/byteranges;\s*boundary=("?)([^"]+)\1\z!
		or die "not multipart/byteranges: \"$type\"\n";

	my $delimiter = "\r\n--$2";
	my $body = "\r\n$self->{body}";
	my @parts;

	$body =~ s/\A(?:\r\n)+/\r\n/;
	index($body, $delimiter) == 0 or die "bytes before the first part\n";

	my $pos = length($delimiter);

	while (substr($body, $pos, 2) ne '--') {
		substr($body, $pos, 2) eq "\r\n"
			or die "no CRLF after a delimiter\n";

		my $end = index($body, "\r\n\r\n", $pos);
		die "a part without end of headers\n" if $end < 0;

		my %headers = map { /\A([^:]+):\s*(.*)\z/ ? (lc $1 => $2)
			: die "bad header \"$_\" in a part\n" }
			split(/\r\n/, substr($body, $pos + 2,
				$end - $pos - 2));

		($headers{'content-range'} // '')
			=~ m!\Abytes (\d+)-(\d+)/(\d+|\*)\z!
			or die "a part without Content-Range\n";

		my ($first, $last, $total) = ($1, $2, $3);
		my $len = $last - $first + 1;
		my $start = $end + 4;

		substr($body, $start + $len, length($delimiter)) eq $delimiter
			or die "a part that is not as long as it says\n";

		push @parts, {
			headers => \%headers, start => $first, end => $last,
			total => $total, body => substr($body, $start, $len)
		};

		$pos = $start + $len + length($delimiter);
	}

	substr($body, $pos + 2) =~ /\A(?:\r\n)?\z/
		or die "bytes after the last part\n";

	return \@parts;
}

1;
