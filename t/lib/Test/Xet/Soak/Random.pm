package Test::Xet::Soak::Random;

# Copyright (C) the ngx_http_xet_module authors

# Draws random numbers that depend only on a label: a step of a run draws the
# same numbers, whatever steps ran before.

use warnings;
use strict;

use Digest::MD5 qw/ md5 /;

sub new {
	my ($class, @label) = @_;

	return bless { label => join('/', @label), n => 0, left => [] },
		$class;
}

# Returns a number from 0 to n - 1.

sub int {
	my ($self, $n) = @_;

	$self->{left} = [ unpack('Q2', md5("$self->{label}#"
		. $self->{n}++)) ] unless @{ $self->{left} };

	return shift(@{ $self->{left} }) % $n;
}

sub chance {
	my ($self, $percent) = @_;

	return $self->int(100) < $percent;
}

sub pick {
	my ($self, @of) = @_;

	return $of[$self->int(scalar @of)];
}

# Returns one key of { name => weight }.

sub weighted {
	my ($self, $weights) = @_;

	my $sum = 0;
	$sum += $_ for values %$weights;

	my $at = $self->int($sum);

	for my $name (sort keys %$weights) {
		return $name if ($at -= $weights->{$name}) < 0;
	}
}

1;
